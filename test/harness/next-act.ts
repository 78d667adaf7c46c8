import type { Act, JobFacts, StageFacts } from '../../src/kernel/advance.ts'
import { Agenda } from '../../src/kernel/agenda.ts'

/** The next act of a job that nobody has looked at yet; undefined: nothing is to be done until something happens. */
export function nextAct(job: JobFacts, stages: readonly StageFacts[]): Act | undefined {
  const agenda = new Agenda(job, stages)
  return agenda.nextOfStages() ?? agenda.nextOfJob()
}

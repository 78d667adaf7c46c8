import type { Act, JobFacts, StageFacts } from '../../src/kernel/advance.ts'
import { NextActs } from '../../src/kernel/next-acts.ts'

/** The next act of a job that nobody has looked at yet; undefined: nothing is to be done until something happens. */
export function nextAct(job: JobFacts, stages: readonly StageFacts[]): Act | undefined {
  const acts = new NextActs(job, stages)
  return acts.ofStages() ?? acts.ofJob()
}

import type { Act, JobFacts, StageFacts } from '../../src/kernel/advance.ts'
import { NextActs } from '../../src/kernel/next-acts.ts'

/** The next act of a job that was not checked before; undefined: it waits for something to happen. */
export function nextAct(job: JobFacts, stages: readonly StageFacts[]): Act | undefined {
  const acts = new NextActs(job, stages)
  return acts.ofStages() ?? acts.ofJob()
}

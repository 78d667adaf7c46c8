/** A key may be for some queues only; what is queued must then be in them. */
import type { StagePlan } from '../kernel/plan.ts'
import { Problem } from '../kernel/problem.ts'

/** Where the tasks of stages lie, and those that undo them. */
export function queuesIn(stages: readonly Pick<StagePlan, 'queue' | 'task' | 'compensate'>[]): unknown[] {
  return stages.flatMap(({ queue, task, compensate }) => [queue ?? task, compensate?.queue ?? compensate?.task])
}

/** `named` may be anything yet; what is no name of a queue is refused elsewhere. null: every queue is allowed. */
export function demandQueues(allowed: readonly string[] | null, named: readonly unknown[]): void {
  if (allowed === null) return
  const beyond = named.filter(queue => typeof queue === 'string').filter(queue => !allowed.includes(queue))
  if (beyond.length > 0) throw new Problem('KEY_REFUSED', { queues: [...new Set(beyond)], may: allowed })
}

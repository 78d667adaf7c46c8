/** A key may be for some queues only; what is queued must then be in them. */

import { commandType, permissionQueueOf } from '../kernel/datum.ts'
import type { StagePlan } from '../kernel/plan.ts'
import { Problem } from '../kernel/problem.ts'
import { isObject } from '../schema/check.ts'
import type { StageSpec } from '../spec/job-spec.ts'

/** Where the tasks of stages lie, and those that undo them. */
export function queuesIn(stages: readonly Pick<StagePlan, 'queue' | 'task' | 'compensate'>[]): unknown[] {
  return stages.flatMap(({ queue, task, compensate }) => [queue ?? task, compensate?.queue ?? compensate?.task])
}

/** The same of stages as they were written; what is no stage at all is refused elsewhere. */
export function queuesSaid(stages: readonly unknown[]): unknown[] {
  const written = stages.filter(isObject) as unknown as StageSpec[]
  return written.flatMap(({ queue, task, run, compensate }) => [
    queue ?? (run === undefined ? task : commandType),
    compensate?.queue ?? compensate?.task,
  ])
}

/**
 * A stage that fails can fail its job. So whoever adds one must have a key for the queue of a stage that is there, unless
 * there is none yet.
 */
export function demandJob(allowed: readonly string[] | null, queues: readonly string[]): void {
  if (allowed === null || queues.length === 0 || isForOne(allowed, queues)) return
  demandQueues(allowed, queues)
}

/** Whether a key for the first queues is for one of the second. */
export function isForOne(allowed: readonly string[], queues: readonly string[]): boolean {
  return queues.some(queue => allowed.includes(permissionQueueOf(queue)))
}

/** `named` may be anything yet; what is no name of a queue is refused elsewhere. null: every queue is allowed. */
export function demandQueues(allowed: readonly string[] | null, named: readonly unknown[]): void {
  if (allowed === null) return
  const wanted = named.filter(queue => typeof queue === 'string').map(permissionQueueOf)
  const beyond = wanted.filter(queue => !allowed.includes(queue))
  if (beyond.length > 0) throw new Problem('KEY_REFUSED', { queues: [...new Set(beyond)], may: allowed })
}

/** A task as Marie shows a job. */

import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import { anything, at, figure, flag, list, object, orNull, text, view, whole } from '../../protocol/shapes.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { isObject } from '../../schema/check.ts'
import type { AskersEngine } from '../askers-engine.ts'
import { wordFor } from '../words.ts'
import type { keptOf } from './invoke.ts'
import { words } from './words.ts'

/** States whose reason is in the task's events. */
const reasoned: readonly TaskState[] = ['skipped', 'cancelled']

export async function workInfos(engine: AskersEngine, tasks: readonly TaskView[]) {
  const ids = tasks.filter(({ state }) => reasoned.includes(state)).map(({ id }) => id)
  const reasons = ids.length === 0 ? undefined : await engine.reasonsOf(ids)
  return tasks.map(task => workInfo(task, reasons?.get(task.id)))
}

/** Fields that only Marie's clients send are null for tasks from other clients. */
function workInfo(task: TaskView, reason: string | undefined) {
  const kept: Partial<ReturnType<typeof keptOf>> = isObject(task.metadata.marie) ? task.metadata.marie : {}
  return {
    id: kept.id ?? task.id,
    name: task.type,
    priority: task.priority,
    data: task.payload,
    state: wordFor(words.task, task, 0),
    retry_limit: kept.retry_limit ?? null,
    retry_delay: kept.retry_delay ?? null,
    retry_backoff: kept.retry_backoff ?? null,
    start_after: task.runAt,
    expire_in_seconds: kept.expire_in_seconds ?? null,
    keep_until: task.keepUntil,
    dependencies: kept.dependencies ?? [],
    dag_id: kept.dag_id ?? task.jobId,
    soft_sla: kept.soft_sla ?? null,
    hard_sla: kept.hard_sla ?? null,
    created_at: task.createdAt,
    completed_at: task.endedAt,
    output_metadata: outputMetadata(task, reason),
  }
}

/** The metadata that Marie's scheduler stores when it completes, skips or fails a job. */
function outputMetadata({ state, output, error, tries }: TaskView, reason: string | undefined) {
  if (reason !== undefined) return { reason }
  if (state === 'succeeded') return isObject(output) || output === null ? output : { result: output }
  return error === null ? null : { error: error.message, attempts: tries }
}

export const workInfoSchema = view<ReturnType<typeof workInfo>>({
  id: text,
  name: text,
  priority: whole,
  data: anything,
  state: { enum: [...new Set(Object.keys(taskLifecycle.states).map(state => words.task![state as never]))] },
  retry_limit: orNull(whole),
  retry_delay: orNull(figure),
  retry_backoff: orNull(flag),
  start_after: at,
  expire_in_seconds: orNull(figure),
  keep_until: orNull(at),
  dependencies: list(text),
  dag_id: orNull(text),
  soft_sla: orNull(at),
  hard_sla: orNull(at),
  created_at: at,
  completed_at: orNull(at),
  output_metadata: orNull(object),
})

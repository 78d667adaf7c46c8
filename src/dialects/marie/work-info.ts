/** A task as Marie shows a job. */

import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import type { Schema } from '../../schema/check.ts'
import { isObject } from '../../schema/check.ts'
import type { AskersEngine } from '../askers-engine.ts'
import { wordFor } from '../words.ts'
import { schemaOf } from './envelope.ts'
import { words } from './words.ts'

/** What was said of a job that Pawl knows in other words, or not at all: kept with the task, under `marie`. */
export interface Kept {
  readonly id: string | null
  readonly dag_id: string | null
  readonly dependencies: readonly string[]
  readonly retry_limit: number
  readonly retry_delay: number
  readonly retry_backoff: boolean
  readonly expire_in_seconds: number
  readonly soft_sla: string | null
  readonly hard_sla: string | null
}

/** States that a task comes into for a reason: its events know it. */
const reasoned: readonly TaskState[] = ['skipped', 'cancelled']

export async function workInfos(engine: AskersEngine, tasks: readonly TaskView[]) {
  const ids = tasks.filter(({ state }) => reasoned.includes(state)).map(({ id }) => id)
  const reasons = ids.length === 0 ? undefined : await engine.reasonsOf(ids)
  return tasks.map(task => workInfo(task, reasons?.get(task.id)))
}

/** Of a task that was queued otherwise, what only Marie's clients say is null. */
function workInfo(task: TaskView, reason: string | undefined) {
  const kept: Partial<Kept> = isObject(task.metadata.marie) ? task.metadata.marie : {}
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

/** As Marie's scheduler keeps it when it completes, skips or fails a job; null: there is nothing to tell. */
function outputMetadata({ state, output, error, tries }: TaskView, reason: string | undefined) {
  if (reason !== undefined) return { reason }
  if (state === 'succeeded') return isObject(output) || output === null ? output : { result: output }
  return error === null ? null : { error: error.message, attempts: tries }
}

const text = { type: 'string' }
const at = { type: 'string', format: 'date-time' }
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] })

export const workInfoSchema: Schema = schemaOf({
  id: text,
  name: text,
  priority: { type: 'integer' },
  data: {},
  state: { enum: [...new Set(Object.keys(taskLifecycle.states).map(state => words.task![state as never]))] },
  retry_limit: orNull({ type: 'integer' }),
  retry_delay: orNull({ type: 'number' }),
  retry_backoff: orNull({ type: 'boolean' }),
  start_after: at,
  expire_in_seconds: orNull({ type: 'number' }),
  keep_until: orNull(at),
  dependencies: { type: 'array', items: text },
  dag_id: orNull(text),
  soft_sla: orNull(at),
  hard_sla: orNull(at),
  created_at: at,
  completed_at: orNull(at),
  output_metadata: orNull({ type: 'object' }),
} satisfies Record<keyof ReturnType<typeof workInfo>, Schema>)

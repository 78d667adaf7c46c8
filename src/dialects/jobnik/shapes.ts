/** What Jobnik's clients are answered, as JSON Schema: with nothing missing and nothing more. */

import { at, id, list, object, text, view, whole, words } from '../../protocol/shapes.ts'
import type { Schema } from '../../schema/check.ts'
import type { JobBody, StageBody, Summary, TaskBody } from './bodies.ts'
import { priorityWords } from './priorities.ts'
import { stageWords, taskWords } from './requests.ts'

export const jobWords = ['PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'ABORTED', 'PAUSED', 'CREATED']
const percentage = { type: 'integer', minimum: 0, maximum: 100 }

export const task = view<TaskBody>(
  {
    id,
    data: object,
    stageId: id,
    status: words(...taskWords),
    attempts: whole,
    maxAttempts: whole,
    traceparent: text,
    userMetadata: object,
    creationTime: at,
    updateTime: at,
    startTime: at,
    endTime: at,
  },
  ['startTime', 'endTime'],
)

export const summary = view<Summary>({
  pending: whole,
  inProgress: whole,
  completed: whole,
  failed: whole,
  created: whole,
  retried: whole,
  total: whole,
})

export const stage = view<StageBody>(
  {
    id,
    type: text,
    data: object,
    summary,
    jobId: id,
    order: { type: 'integer', minimum: 1 },
    traceparent: text,
    userMetadata: object,
    percentage,
    status: words(...stageWords),
    tasks: list(task),
  },
  ['tasks'],
)

export const job = view<JobBody>(
  {
    id,
    name: text,
    data: object,
    userMetadata: object,
    traceparent: text,
    tracestate: text,
    status: words(...jobWords),
    percentage,
    creationTime: at,
    updateTime: at,
    priority: words(...priorityWords),
    stages: list(stage),
  },
  ['tracestate', 'stages'],
)

/** Without a page it is the list itself. */
export const listed = (items: Schema): Schema => ({
  anyOf: [list(items), view<{ total: number; items: unknown }>({ total: whole, items: list(items) })],
})

export const done = (code: string): Schema => view<{ code: string }>({ code: { const: code } })

export const faults = view<{ message: string; code: string }>({ message: text, code: text })

export const alive = view<{ status: string }>({ status: { const: 'ok' } })

export const anyObject: Schema = object

/** Not JSON. */
export const page: Schema = text

/** Our views in Jobnik's shapes. */

import { isFinal } from '../../kernel/lifecycle.ts'
import { defaultSettings } from '../../kernel/settings.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import type { TaskState } from '../../kernel/task.ts'
import type { JobView, StageView, TaskCounts } from '../../protocol/jobs/jobs.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { isObject } from '../../schema/check.ts'
import { type JobFacts, type StageFacts, wordFor } from '../words.ts'
import { type Priority, priorityFor } from './priorities.ts'
import { words } from './words.ts'

export interface TaskBody {
  readonly id: string
  readonly data: Record<string, unknown>
  readonly stageId: string
  readonly status: string
  readonly attempts: number
  readonly maxAttempts: number
  readonly traceparent: string
  readonly userMetadata: Record<string, unknown>
  readonly creationTime: string
  readonly updateTime: string
  readonly startTime?: string
  readonly endTime?: string
}

export interface Summary {
  readonly pending: number
  readonly inProgress: number
  readonly completed: number
  readonly failed: number
  readonly created: number
  readonly retried: number
  readonly total: number
}

export interface StageBody {
  readonly id: string
  readonly type: string
  readonly data: Record<string, unknown>
  readonly summary: Summary
  readonly jobId: string
  readonly order: number
  readonly traceparent: string
  readonly userMetadata: Record<string, unknown>
  readonly percentage: number
  readonly status: string
  readonly tasks?: readonly TaskBody[]
}

export interface JobBody {
  readonly id: string
  readonly name: string
  readonly data: Record<string, unknown>
  readonly userMetadata: Record<string, unknown>
  readonly traceparent: string
  readonly tracestate?: string
  readonly status: string
  readonly percentage: number
  readonly creationTime: string
  readonly updateTime: string
  readonly priority: Priority
  readonly stages?: readonly StageBody[]
}

const noTrace = `00-${'0'.repeat(32)}-${'0'.repeat(16)}-00`
/** Of a task that stands alone, which Jobnik does not know. */
const noStage = '00000000-0000-0000-0000-000000000000'

// None of its words depends on the time.
const never = 0
export const jobWord = (job: JobFacts) => wordFor(words.job, job, never)!
export const stageWord = (stage: StageFacts) => wordFor(words.stage, stage, never)!
export const taskWord = (state: TaskState) => wordFor(words.task, { state }, never)!

export function taskBody(task: TaskView): TaskBody {
  const { startedAt, endedAt } = task
  return {
    id: task.id,
    data: dataIn(task.payload),
    stageId: task.stageId ?? noStage,
    status: taskWord(task.state),
    attempts: task.failures,
    maxAttempts: task.settings.retry?.attempts ?? defaultSettings.attempts,
    traceparent: task.traceparent ?? noTrace,
    userMetadata: task.metadata,
    creationTime: task.createdAt,
    updateTime: task.changedAt,
    ...(startedAt !== null && { startTime: startedAt }),
    ...(endedAt !== null && { endTime: endedAt }),
  }
}

/** `counts`: of its tasks by state, if it has not ended. */
export function stageBody(stage: StageView, counts: TaskCounts | undefined): StageBody {
  const summary = summaryOf(stage, counts)
  return {
    id: stage.id,
    type: stage.queue,
    data: dataIn(stage.data),
    summary,
    jobId: stage.jobId,
    order: stage.ordinal + 1,
    traceparent: stage.traceparent ?? noTrace,
    userMetadata: stage.metadata,
    percentage: shareOf(summary.completed, summary.total),
    status: stageWord(stage),
  }
}

/** Of a stage that has ended the counts are final, and need not be counted again. */
export const hasEnded = ({ state }: StageView) => isFinal(stageLifecycle, state)

function summaryOf(stage: StageView, counts: TaskCounts = {}): Summary {
  const { total, good, bad } = stage.progress
  const none = { pending: 0, inProgress: 0, completed: 0, failed: 0, created: 0, retried: 0 }
  if (hasEnded(stage)) return { ...none, completed: good, failed: bad, total }
  const of = (word: string) =>
    Object.entries(counts).reduce((sum, [state, tasks]) => sum + (taskWord(state as TaskState) === word ? tasks : 0), 0)
  const found = {
    pending: of('PENDING'),
    inProgress: of('IN_PROGRESS'),
    completed: of('COMPLETED'),
    failed: of('FAILED'),
    created: 0,
    retried: of('RETRIED'),
  }
  return { ...found, total: Object.values(found).reduce((sum, tasks) => sum + tasks, 0) }
}

export const workOf = ({ stages }: JobView) => stages.filter(({ kind }) => kind === 'work')

export function jobBody(job: JobView, stages?: readonly StageBody[]): JobBody {
  const work = workOf(job)
  const completed = work.filter(stage => stageWord(stage) === 'COMPLETED').length
  return {
    id: job.id,
    name: job.name,
    data: dataIn(job.input),
    userMetadata: job.metadata,
    traceparent: job.traceparent ?? noTrace,
    ...(job.tracestate !== null && { tracestate: job.tracestate }),
    status: jobWord(job),
    percentage: shareOf(completed, work.length),
    creationTime: job.createdAt,
    updateTime: job.changedAt,
    priority: priorityFor(job.priority),
    ...(stages !== undefined && { stages }),
  }
}

const shareOf = (part: number, whole: number) => (whole === 0 ? 0 : Math.floor((100 * part) / whole))

/** Jobnik's data is always an object; what was submitted otherwise may be anything. */
function dataIn(value: unknown): Record<string, unknown> {
  if (isObject(value)) return value
  return value === null || value === undefined ? {} : { value }
}

/** A job as the original shows it, and what each answer holds. */

import type { JobView, StageView } from '../../protocol/jobs/jobs.ts'
import { at, id, list, object, words as oneOf, orNull, text, view, whole } from '../../protocol/shapes.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { isObject, type Schema } from '../../schema/check.ts'
import { wordFor } from '../words.ts'
import { words } from './words.ts'

/** A job with as many of its tasks as are looked at, by the database's clock. */
export interface Look {
  readonly job: JobView
  readonly tasks: readonly TaskView[]
  readonly now: number
}

export interface StageProgress {
  readonly status: string
  readonly duration_ms: number
  readonly metrics: Readonly<Record<string, unknown>>
  readonly errors: readonly string[]
}

export interface JobError {
  readonly stage: string | null
  readonly message: string
}

interface JobShape {
  readonly id: string
  readonly trace_id: string
  readonly status: string
  readonly current_stage: string | null
  readonly created_at: string
  readonly started_at: string | null
  readonly finished_at: string | null
  readonly stage_progress: Readonly<Record<string, StageProgress>>
  readonly errors: readonly JobError[]
  readonly pipeline_run_summary_id: string | null
}

export const statuses = ['pending', 'running', 'completed', 'partial', 'failed', 'cancelled'] as const

export function jobShape(look: Look): JobShape {
  const { job } = look
  return {
    id: job.id,
    ...aboutJob(job),
    status: statusOf(job, look.now),
    current_stage: currentStage(job),
    created_at: job.createdAt,
    stage_progress: stageProgress(look, shownStages(job)),
    errors: errorsOf(look),
    pipeline_run_summary_id: summaryOf(job),
  }
}

/** What is in everything that is said of a job. */
export function aboutJob(job: JobView) {
  return { trace_id: traceId(job), started_at: job.startedAt, finished_at: job.endedAt }
}

/** Where nobody brought a trace, the job itself stands for it. */
export function traceId({ id, traceparent }: JobView): string {
  return traceparent?.split('-')[1] ?? id.replaceAll('-', '')
}

export const statusOf = (job: JobView, now: number) => wordFor(words.job, job, now)!

/** Those that have work to do: no gate, nothing that only gives a value, nothing that undoes. */
export const shownStages = ({ stages }: JobView) => stages.filter(({ kind, task }) => kind === 'work' && task !== null)

/** What has begun or ended, by its name. */
export function stageProgress(look: Look, stages: readonly StageView[]): Record<string, StageProgress> {
  const shown = stages.flatMap(stage => {
    const status = wordFor(words.stage, { ...stage, startedAt: firstStart(look, stage) }, look.now)
    return status === null ? [] : [[stage.name, { status, ...resultOf(look, stage) }] as const]
  })
  return Object.fromEntries(shown)
}

function resultOf({ tasks, now }: Look, stage: StageView): Omit<StageProgress, 'status'> {
  const mine = tasks.filter(({ stageId }) => stageId === stage.id)
  const begin = firstStart({ tasks }, stage)
  const end = stage.endedAt === null ? now : Date.parse(stage.endedAt)
  const { total, good, bad, partial, skipped } = stage.progress
  const metrics = total === 1 && mine.length === 1 ? metricsOf(mine[0]!) : { total, good, bad, partial, skipped }
  return {
    duration_ms: begin === null ? 0 : Math.max(0, Math.round(end - Date.parse(begin))),
    metrics: total === 0 ? {} : metrics,
    errors: [...(stage.error === null ? [] : [stage.error.message]), ...mine.toReversed().flatMap(errorsOfTask)],
  }
}

/** A cancel may come between the start of a task and the move of its stage, which then has no start of its own. */
function firstStart({ tasks }: Pick<Look, 'tasks'>, stage: StageView): string | null {
  const mine = tasks.filter(({ stageId }) => stageId === stage.id)
  const starts = [stage, ...mine].flatMap(({ startedAt }) => startedAt ?? [])
  return starts.sort()[0] ?? null
}

/** What the handler has returned as such; on the way, what it told of its progress. */
function metricsOf({ output, progress }: TaskView): Record<string, unknown> {
  const said = isObject(output) ? output.metrics : progress
  return isObject(said) ? said : {}
}

function errorsOfTask({ output, error }: TaskView): string[] {
  const said = isObject(output) && Array.isArray(output.errors) ? output.errors : []
  const texts = said.map(one => (typeof one === 'string' ? one : JSON.stringify(one)))
  return error === null ? texts : [...texts, error.message]
}

/** Of its stages; and why it ended where they did not. */
export function errorsOf(look: Look): JobError[] {
  const { job } = look
  const ofStages = shownStages(job).flatMap(stage =>
    resultOf(look, stage).errors.map(message => ({ stage: stage.name, message })),
  )
  const why = endedBecause(job)
  return why === null ? ofStages : [...ofStages, { stage: currentStage(job), message: why }]
}

function endedBecause({ state, cause, endedAt, stages }: JobView): string | null {
  if (state === 'expired') return 'Job timed out or was orphaned'
  if (state === 'cancelled')
    return cause === null || cause === 'cancel' ? 'Job was cancelled' : `Job was cancelled: ${cause}`
  return endedAt !== null && stages.some(({ calledOffFrom }) => calledOffFrom !== null) ? cause : null
}

/** The stage that began last; null: none has, or the job has run through. */
function currentStage(job: JobView): string | null {
  if (job.state === 'succeeded' || job.state === 'partial') return null
  const begun = shownStages(job).filter(({ startedAt }) => startedAt !== null)
  const last = begun.reduce<StageView | null>(
    (latest, stage) => (latest === null || stage.startedAt! >= latest.startedAt! ? stage : latest),
    null,
  )
  return last?.name ?? null
}

/** The stage that gave it. */
function summaryOf({ stages }: JobView): string | null {
  return (
    stages.find(({ name, task, state }) => name === 'summary' && task === null && state === 'succeeded')?.id ?? null
  )
}

const stage = view<StageProgress>({
  status: oneOf('running', 'completed', 'partial', 'failed', 'skipped'),
  duration_ms: whole,
  metrics: object,
  errors: list(text),
})

const job = view<JobShape>({
  id,
  trace_id: text,
  status: oneOf(...statuses),
  current_stage: orNull(text),
  created_at: at,
  started_at: orNull(at),
  finished_at: orNull(at),
  stage_progress: { type: 'object', additionalProperties: stage },
  errors: list(view<JobError>({ stage: orNull(text), message: text })),
  pipeline_run_summary_id: orNull(id),
})

const closed = (properties: Record<string, Schema>) => view<typeof properties>(properties)

export const answers = {
  started: closed({ job_id: id, trace_id: text, status: oneOf(...statuses), status_url: text, stream_url: text }),
  job,
  jobs: closed({ jobs: list(job), total: whole, running_count: whole }),
  cancelled: {
    anyOf: [
      closed({ cancelled: { const: true }, message: text }),
      closed({ cancelled: { const: false }, reason: text }),
    ],
  },
} satisfies Record<string, Schema>

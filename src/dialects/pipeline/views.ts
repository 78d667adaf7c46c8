/** Jobs as the original shows them, and the JSON Schemas of its answers. */

import type { JobView, StageView } from '../../protocol/jobs/jobs.ts'
import { at, id, list, object, words as oneOf, orNull, text, view, whole } from '../../protocol/shapes.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { isObject, type Schema } from '../../schema/check.ts'
import { closedObject } from '../dialect.ts'
import { wordFor } from '../words.ts'
import { statuses, words } from './words.ts'

/** A job and facts of its latest tasks, at a moment of the database's clock. */
export interface Snapshot {
  readonly job: JobView
  readonly tasks: TasksByStage
  readonly now: number
}

/** The facts of a task that the shapes of a job show. */
export interface TaskFacts extends Pick<TaskView, 'stageId' | 'startedAt'> {
  /** The metrics that the handler returned; while it runs, those of its progress. */
  readonly metrics: Record<string, unknown>
  readonly errors: readonly string[]
}

/** By the id of the stage, oldest first. */
export type TasksByStage = ReadonlyMap<string | null, readonly TaskFacts[]>

export function taskFacts({ stageId, startedAt, output, progress, error }: TaskView): TaskFacts {
  const metrics = isObject(output) ? output.metrics : progress
  const errors = isObject(output) && Array.isArray(output.errors) ? output.errors : []
  const texts = errors.map(one => (typeof one === 'string' ? one : JSON.stringify(one)))
  return {
    stageId,
    startedAt,
    metrics: isObject(metrics) ? metrics : {},
    errors: error === null ? texts : [...texts, error.message],
  }
}

export function jobShape(snapshot: Snapshot) {
  const { job } = snapshot
  return {
    id: job.id,
    ...traceAndTimes(job),
    status: statusOf(job, snapshot.now),
    current_stage: currentStage(job),
    created_at: job.createdAt,
    stage_progress: stageProgress(snapshot, shownStages(job)),
    errors: errorsOf(snapshot),
    pipeline_run_summary_id: summaryOf(job),
  }
}

/** Fields of every shape of a job. */
export function traceAndTimes(job: JobView) {
  return { trace_id: traceId(job), started_at: job.startedAt, finished_at: job.endedAt }
}

/** A job without a trace has its own id as the trace id. */
export function traceId({ id, traceparent }: JobView): string {
  return traceparent?.split('-')[1] ?? id.replaceAll('-', '')
}

export const statusOf = (job: JobView, now: number) => wordFor(words.job, job, now)!

/** Stages with work: without gates, values and compensations. */
export const shownStages = ({ stages }: JobView) => stages.filter(({ kind, task }) => kind === 'work' && task !== null)

/** The stages that have started or ended, by name. */
export function stageProgress(snapshot: Snapshot, stages: readonly StageView[]) {
  const shown = stages.flatMap(stage => {
    const status = wordFor(words.stage, { ...stage, startedAt: firstStart(snapshot, stage) }, snapshot.now)
    return status === null ? [] : [[stage.name, { status, ...resultOf(snapshot, stage) }] as const]
  })
  return Object.fromEntries(shown)
}

function resultOf({ tasks, now }: Snapshot, stage: StageView) {
  const mine = tasks.get(stage.id) ?? []
  const begin = firstStart({ tasks }, stage)
  const end = stage.endedAt === null ? now : Date.parse(stage.endedAt)
  const { total, good, bad, partial, skipped } = stage.progress
  const metrics = total === 1 && mine.length === 1 ? mine[0]!.metrics : { total, good, bad, partial, skipped }
  return {
    duration_ms: begin === null ? 0 : Math.max(0, Math.round(end - Date.parse(begin))),
    metrics: total === 0 ? {} : metrics,
    errors: [...(stage.error === null ? [] : [stage.error.message]), ...mine.flatMap(({ errors }) => errors)],
  }
}

/** If a cancel arrives between the start of a task and that of its stage, the stage has no start of its own. */
function firstStart({ tasks }: Pick<Snapshot, 'tasks'>, stage: StageView): string | null {
  const starts = [stage, ...(tasks.get(stage.id) ?? [])].flatMap(({ startedAt }) => startedAt ?? [])
  return starts.sort()[0] ?? null
}

export function byStage(tasks: readonly TaskFacts[]): TasksByStage {
  const groups = new Map<string | null, TaskFacts[]>()
  for (const task of tasks) {
    const group = groups.get(task.stageId)
    if (group === undefined) groups.set(task.stageId, [task])
    else group.push(task)
  }
  return groups
}

/** The errors of the stages, and the reason why the job ended early. */
export function errorsOf(snapshot: Snapshot) {
  const { job } = snapshot
  const ofStages = shownStages(job).flatMap(stage =>
    resultOf(snapshot, stage).errors.map(message => ({ stage: stage.name, message })),
  )
  const reason = reasonOfEnd(job)
  return reason === null ? ofStages : [...ofStages, { stage: currentStage(job), message: reason }]
}

function reasonOfEnd({ state, cause, endedAt, stages }: JobView): string | null {
  if (state === 'expired') return 'Job timed out or was orphaned'
  if (state === 'cancelled')
    return cause === null || cause === 'cancel' ? 'Job was cancelled' : `Job was cancelled: ${cause}`
  return endedAt !== null && stages.some(({ calledOffFrom }) => calledOffFrom !== null) ? cause : null
}

/** The stage that started last; null before the first, and once the job is completed or partial. */
function currentStage(job: JobView): string | null {
  if (job.state === 'succeeded' || job.state === 'partial') return null
  const started = shownStages(job).filter(({ startedAt }) => startedAt !== null)
  const last = started.reduce<StageView | null>(
    (latest, stage) => (latest === null || stage.startedAt! >= latest.startedAt! ? stage : latest),
    null,
  )
  return last?.name ?? null
}

/** The id of the stage that computed the summary. */
function summaryOf({ stages }: JobView): string | null {
  return (
    stages.find(({ name, task, state }) => name === 'summary' && task === null && state === 'succeeded')?.id ?? null
  )
}

const stage = view<ReturnType<typeof stageProgress>[string]>({
  status: oneOf('running', 'completed', 'partial', 'failed', 'skipped'),
  duration_ms: whole,
  metrics: object,
  errors: list(text),
})

const job = view<ReturnType<typeof jobShape>>({
  id,
  trace_id: text,
  status: oneOf(...statuses),
  current_stage: orNull(text),
  created_at: at,
  started_at: orNull(at),
  finished_at: orNull(at),
  stage_progress: { type: 'object', additionalProperties: stage },
  errors: list(view<ReturnType<typeof errorsOf>[number]>({ stage: orNull(text), message: text })),
  pipeline_run_summary_id: orNull(id),
})

export const answers = {
  started: closedObject({ job_id: id, trace_id: text, status: oneOf(...statuses), status_url: text, stream_url: text }),
  job,
  jobs: closedObject({ jobs: list(job), total: whole, running_count: whole }),
  cancelled: {
    anyOf: [
      closedObject({ cancelled: { const: true }, message: text }),
      closedObject({ cancelled: { const: false }, reason: text }),
    ],
  },
} satisfies Record<string, Schema>

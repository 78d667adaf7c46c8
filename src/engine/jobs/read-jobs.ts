import { setTimeout as sleep } from 'node:timers/promises'
import { Problem } from '../../kernel/problem.ts'
import {
  type JobQuery,
  type JobView,
  jobQueryFields,
  type Progress,
  type StageJob,
  type StageQuery,
  type StageView,
  stageQueryFields,
  type TaskCounts,
} from '../../protocol/jobs/jobs.ts'
import type { Page } from '../../protocol/tasks/tasks.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { isListing } from '../../store/files/listings.ts'
import {
  countJobs,
  countStages,
  countTasks,
  getJob,
  getStage,
  type JobReadRow,
  listJobs,
  listStages,
  type StageReadRow,
  stagesOf,
  type TaskCount,
} from '../../store/jobs/read-jobs.ts'
import { checkId, checkOptions } from '../check.ts'
import { iso, parseDate } from '../tasks/task-view.ts'

export async function readJob({ sql }: { readonly sql: Sql }, id: string): Promise<JobView> {
  const jobId = checkId(id, 'JOB_NOT_FOUND')
  const job = await getJob(sql, jobId)
  if (job === undefined) throw new Problem('JOB_NOT_FOUND', { id })
  return toJobView(job, await stagesOf(sql, [jobId]))
}

export async function readStage({ sql }: { readonly sql: Sql }, id: string): Promise<StageView> {
  const stage = await getStage(sql, checkId(id, 'STAGE_NOT_FOUND'))
  if (stage === undefined) throw new Problem('STAGE_NOT_FOUND', { id })
  return toStageView(stage)
}

/** Returns what a worker may know of the job of a stage. */
export async function readStageJob({ sql }: { readonly sql: Sql }, stageId: string): Promise<StageJob> {
  const stage = await readStage({ sql }, stageId)
  const job = await getJob(sql, stage.jobId)
  if (job === undefined) throw new Problem('STAGE_NOT_FOUND', { id: stageId })
  const { id, name, input, round, metadata, correlationId } = job
  return { id, name, input, round, metadata: metadata ?? {}, correlationId, stage: stage.name }
}

/** Returns one page of jobs, newest first by default. */
export async function findJobs({ sql }: { readonly sql: Sql }, query: JobQuery = {}): Promise<Page<JobView>> {
  checkOptions(query, jobQueryFields, 'jobs')
  const { limit = 50, cursor, order = 'newest', offset = 0 } = query
  const filter = {
    name: query.name ?? null,
    search: query.search ?? null,
    states: query.state === undefined ? [] : [query.state].flat(),
    correlationId: query.correlationId ?? null,
    createdFrom: parseDate(query.createdFrom),
    createdTo: parseDate(query.createdTo),
    priorityFrom: query.priorityFrom ?? null,
    priorityTo: query.priorityTo ?? null,
  }
  const place = cursor === undefined ? undefined : parsePlace(cursor)
  const byAge = order === 'newest' || order === 'oldest'
  const paging = byAge ? { offset, cursor: place?.toString() ?? null } : { offset: offset + (place ?? 0), cursor: null }
  const jobs = await listJobs(sql, filter, { order, limit, ...paging })
  const stages = await stagesOf(
    sql,
    jobs.map(({ id }) => id),
  )
  const items = jobs.map(job =>
    toJobView(
      job,
      stages.filter(({ jobId }) => jobId === job.id),
    ),
  )
  const last = jobs.at(-1)
  const next = byAge ? last?.n : (place ?? 0) + jobs.length
  return {
    items,
    next: last?.more ? String(next) : null,
    ...(query.total === true && { total: await countJobs(sql, filter) }),
  }
}

const longestPauseMs = 250

/**
 * Waits until the babysitter, in any process, has listed the job's inputs. Returns true if all have been found or the
 * listing has been given up.
 */
export async function waitForInputs(
  { sql }: { readonly sql: Sql },
  id: string,
  waitSeconds: number,
  signal?: AbortSignal,
): Promise<boolean> {
  const jobId = checkId(id, 'JOB_NOT_FOUND')
  const until = performance.now() + waitSeconds * 1000
  for (let pauseMs = 5; await isListing(sql, jobId); pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    if (performance.now() >= until || signal?.aborted) return false
    await sleep(pauseMs, undefined, signal && { signal }).catch(() => {})
  }
  return true
}

/** Returns stages of all jobs, oldest first, for example those that wait for an approval. */
export async function findStages({ sql }: { readonly sql: Sql }, query: StageQuery = {}): Promise<Page<StageView>> {
  checkOptions(query, stageQueryFields, 'stages')
  const { limit = 50, cursor, offset = 0 } = query
  const filter = {
    states: query.state === undefined ? [] : [query.state].flat(),
    jobId: query.jobId === undefined ? null : checkId(query.jobId, 'JOB_NOT_FOUND'),
    queue: query.queue ?? null,
  }
  const rows = await listStages(sql, filter, { order: 'oldest', limit, offset, cursor: parseIdCursor(cursor) })
  return {
    items: rows.map(toStageView),
    next: rows.at(-1)?.more ? rows.at(-1)!.id : null,
    ...(query.total === true && { total: await countStages(sql, filter) }),
  }
}

/** Counts the tasks of a job by current state, per stage. */
export async function countTasksOf({ sql }: { readonly sql: Sql }, id: string): Promise<TaskCount[]> {
  const { stages } = await readJob({ sql }, id)
  return countTasks(
    sql,
    stages.map(stage => stage.id),
  )
}

/** Counts the tasks of these stages by state. Stages without tasks are left out. */
export async function countTasksOfStages(
  { sql }: { readonly sql: Sql },
  stageIds: readonly string[],
): Promise<Map<string, TaskCounts>> {
  const ids = stageIds.map(id => checkId(id, 'STAGE_NOT_FOUND'))
  const found = new Map<string, TaskCounts>()
  if (ids.length === 0) return found
  for (const { stageId, state, count } of await countTasks(sql, ids)) {
    const counts = found.get(stageId)
    found.set(stageId, { ...counts, [state]: (counts?.[state] ?? 0) + count })
  }
  return found
}

export async function countTasksOfStage(context: { readonly sql: Sql }, id: string): Promise<TaskCounts> {
  const stage = await readStage(context, id)
  return (await countTasksOfStages(context, [stage.id])).get(stage.id) ?? {}
}

/** Start of a page: after the job with this number or, in an order other than age, an offset. */
function parsePlace(cursor: string): number {
  if (!/^\d{1,15}$/.test(cursor)) throw new Problem('CURSOR_INVALID', { id: cursor })
  return Number(cursor)
}

const parseIdCursor = (cursor: string | undefined) => (cursor === undefined ? null : checkId(cursor, 'CURSOR_INVALID'))

export function toJobView(job: Omit<JobReadRow, 'n'>, stages: readonly StageReadRow[]): JobView {
  const { id, name, state, round, seq, priority, open, input, endsAs, compensated, correlationId, traceparent } = job
  return {
    id,
    name,
    state,
    round,
    seq,
    priority,
    open,
    input,
    progress: progressOf(stages.filter(({ kind }) => kind === 'work')),
    endsAs,
    cause: job.endsCause,
    compensated,
    correlationId,
    traceparent,
    tracestate: job.plan.tracestate ?? null,
    metadata: job.metadata ?? {},
    clonedFrom: job.clonedFrom,
    leaseSeconds: job.plan.leaseSeconds ?? null,
    deadlineAt: iso(job.deadlineAt),
    createdAt: job.createdAt.toISOString(),
    changedAt: job.changedAt.toISOString(),
    startedAt: iso(job.startedAt),
    endedAt: iso(job.endedAt),
    stages: stages.map(toStageView),
  }
}

function toStageView(stage: StageReadRow): StageView {
  const { id, jobId, name, ordinal, kind, state, round, seq, queue, plan, open, endsAs, error, held, given } = stage
  const { gate } = plan
  return {
    id,
    jobId,
    name,
    ordinal,
    kind,
    state,
    round,
    seq,
    task: plan.task,
    queue,
    files: filesOf(plan),
    needs: plan.needs,
    open,
    progress: progressOf([stage]),
    output: stage.output,
    endsAs,
    cause: stage.endsCause,
    calledOffFrom: stage.calledOffFrom,
    error,
    held,
    gate: gate === null ? null : { approvers: gate.approvers, ask: gate.ask, until: iso(stage.gateUntil) },
    data: plan.data ?? null,
    traceparent: plan.traceparent ?? null,
    approvals: given,
    metadata: stage.metadata ?? {},
    createdAt: stage.createdAt.toISOString(),
    changedAt: stage.changedAt.toISOString(),
    startedAt: iso(stage.startedAt),
    endedAt: iso(stage.endedAt),
  }
}

function filesOf({ files }: StageReadRow['plan']): StageView['files'] {
  if (files === undefined) return null
  const { inputs, outputs, runner } = files
  return { datums: inputs !== null, outputs, runner: runner?.kind ?? null }
}

function progressOf(stages: readonly StageReadRow[]): Progress {
  const sum = (name: 'total' | 'good' | 'bad' | 'partial' | 'skipped') =>
    stages.reduce((total, stage) => total + stage[name], 0)
  const total = sum('total')
  const ended = sum('good') + sum('bad')
  const percent = total === 0 ? 0 : Math.floor((100 * ended) / total)
  return { total, good: sum('good'), bad: sum('bad'), partial: sum('partial'), skipped: sum('skipped'), percent }
}

import { Problem } from '../kernel/problem.ts'
import type { StageState } from '../kernel/stage.ts'
import { jobQueryFields, stageQueryFields } from '../protocol/fields.ts'
import type { JobPage, JobQuery, JobView, Progress, StageView } from '../protocol/jobs.ts'
import {
  countJobs,
  countTasks,
  getJob,
  getStage,
  type JobReadRow,
  listJobs,
  listStages,
  type StageReadRow,
  stagesOf,
  type TaskCount,
} from '../store/job-read.ts'
import type { Sql } from '../store/sql.ts'
import { checkId, checkOptions } from './check.ts'

export async function readJob({ sql }: { readonly sql: Sql }, id: string): Promise<JobView> {
  const jobId = checkId(id, 'JOB_NOT_FOUND')
  const job = await getJob(sql, jobId)
  if (job === undefined) throw new Problem('JOB_NOT_FOUND', { id })
  return toJobView(job, await stagesOf(sql, [jobId]))
}

/** The tasks of a job, counted by their states as they are now. */
export async function countTasksOf({ sql }: { readonly sql: Sql }, id: string): Promise<TaskCount[]> {
  return countTasks(sql, (await readJob({ sql }, id)).id)
}

export async function readStage({ sql }: { readonly sql: Sql }, id: string): Promise<StageView> {
  const stage = await getStage(sql, checkId(id, 'STAGE_NOT_FOUND'))
  if (stage === undefined) throw new Problem('STAGE_NOT_FOUND', { id })
  return toStageView(stage)
}

/** Newest first, in pages. */
export async function findJobs({ sql }: { readonly sql: Sql }, query: JobQuery = {}): Promise<JobPage> {
  checkOptions(query, jobQueryFields, 'jobs')
  const { name = null, correlationId = null, limit = 50, cursor } = query
  const states = query.state === undefined ? [] : [query.state].flat()
  const before = cursor === undefined ? null : checkId(cursor, 'CURSOR_INVALID')
  const fit = { name, correlationId, states }
  const jobs = await listJobs(sql, fit, { before, limit })
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
  const next = items.length < limit ? null : items.at(-1)!.id
  return query.total ? { items, next, total: await countJobs(sql, fit) } : { items, next }
}

/** Stages in some states, over all jobs, the oldest first: what waits for somebody, say. */
export async function findStages(
  { sql }: { readonly sql: Sql },
  query: { readonly state: StageState | readonly StageState[]; readonly limit?: number; readonly cursor?: string },
) {
  checkOptions({ ...query, state: query.state ?? null }, stageQueryFields, 'stages')
  const { limit = 50, cursor } = query
  const after = cursor === undefined ? null : checkId(cursor, 'CURSOR_INVALID')
  const items = (await listStages(sql, [query.state].flat(), after, limit)).map(toStageView)
  return { items, next: items.length < limit ? null : items.at(-1)!.id }
}

const iso = (date: Date | null) => date?.toISOString() ?? null

function toJobView(job: JobReadRow, stages: readonly StageReadRow[]): JobView {
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
    metadata: job.metadata ?? {},
    clonedFrom: job.clonedFrom,
    deadlineAt: iso(job.deadlineAt),
    createdAt: job.createdAt.toISOString(),
    changedAt: job.changedAt.toISOString(),
    startedAt: iso(job.startedAt),
    endedAt: iso(job.endedAt),
    stages: stages.map(toStageView),
  }
}

export function toStageView(stage: StageReadRow): StageView {
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

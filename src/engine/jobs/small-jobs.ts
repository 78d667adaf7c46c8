/**
 * Small jobs whose beginning the kernel decides from the plan alone: nothing is evaluated, listed or approved, and no
 * stage ends at once. One statement inserts such jobs in the states in which they begin (store/jobs/insert-jobs.ts).
 */
import type { JobFacts, StageFacts } from '../../kernel/advance.ts'
import { newId } from '../../kernel/id.ts'
import { NextActs } from '../../kernel/next-acts.ts'
import { type JobPlan, queueOfStage } from '../../kernel/plan.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import type { SmallJob, SmallStage } from '../../store/jobs/insert-jobs.ts'
import type { NewStage } from '../../store/jobs/new-job.ts'
import type { JobReadRow, StageReadRow } from '../../store/jobs/read-jobs.ts'
import { mergeCalls, withoutStale } from '../merge-calls.ts'
import { toJobView } from './read-jobs.ts'

const maxTasks = 200
const maxStages = 20

/** A stage as it will be inserted, and its payloads as JSON text. */
type StageOfPlan = NewStage & { readonly tasks: readonly { readonly payload: string }[] }

/** Undefined: the job is large, or the kernel cannot decide its beginning from the plan alone. */
export function asSmallJob(
  id: string,
  plan: JobPlan,
  stages: readonly StageOfPlan[],
  actor: string,
): SmallJob | undefined {
  const size = stages.reduce((sum, { total }) => sum + total, 0)
  if (size > maxTasks || stages.length > maxStages) return undefined
  const job = jobFacts(plan)
  const facts = stages.map(stageFacts)
  if (!opensByItself(job, facts)) return undefined
  const { stages: _, ...rest } = plan
  const state = job.state === 'created' ? 'created' : 'pending'
  const payloadVersions = new Map<string, string>()
  return {
    id,
    plan: rest,
    actor,
    state,
    payloadVersions,
    stages: facts.map(({ state }, index) => toSmallStage(stages[index]!, state)),
  }
}

/** Opens the stages that can open, as the kernel decides. False: there is more to do. */
function opensByItself(job: JobFacts, stages: readonly { state: StageFacts['state'] }[]): boolean {
  const nextActs = new NextActs(job, stages as readonly StageFacts[])
  for (let changed: StageFacts[] = []; ; ) {
    const next = nextActs.ofStages(changed)
    if (next === undefined) return nextActs.ofJob() === undefined
    if (next.act !== 'move stage' || next.to !== 'pending' || next.stage.state !== 'created') return false
    Object.assign(next.stage, { state: next.to })
    changed = [next.stage]
  }
}

function jobFacts({ start, open }: JobPlan): JobFacts {
  const undecided = { begun: false, endsAs: null, endsCause: null, compensated: false }
  return { state: start ? 'pending' : 'created', round: 1, open, ...undecided }
}

function stageFacts({ id, kind, plan, open, total, blocked }: NewStage): StageFacts {
  const counts = { total, blocked, good: 0, bad: 0, partial: 0, unfanned: 0, badBefore: 0, undoable: 0 }
  const undecided = { endedIn: null, endsAs: null, endsCause: null, opening: null }
  const flags = { begun: false, held: false, busy: false, calledOff: false }
  const listing = plan.files?.inputs ? ('wanted' as const) : null
  return {
    id,
    name: plan.name,
    kind,
    state: 'created',
    plan,
    open,
    approvals: 0,
    listing,
    ...counts,
    ...undecided,
    ...flags,
  }
}

function toSmallStage({ id, plan, open, blocked, tasks }: StageOfPlan, state: StageFacts['state']): SmallStage {
  const { payloads: _, taskId, ...stored } = plan
  return {
    id,
    name: plan.name,
    type: plan.task,
    plan: JSON.stringify(stored),
    open,
    state: state === 'created' ? 'created' : 'pending',
    isBlocked: blocked > 0,
    tasks: tasks.map(({ payload }) => ({ id: taskId ?? newId(), payload })),
  }
}

/** A statement joins with nested loops, so its cost grows with the square of its size. */
const maxRowsPerStatement = 300

/**
 * Returns a function that writes one job and returns the time of its creation. Jobs that arrive while a statement runs
 * share the next one. `insert` writes all of its jobs or none.
 */
export function mergeSubmits(insert: (jobs: readonly SmallJob[]) => Promise<Date>): (job: SmallJob) => Promise<Date> {
  const insertAll = async (jobs: readonly SmallJob[]) => {
    const now = await insert(jobs)
    return jobs.map(() => now)
  }
  const typesOf = ({ stages }: SmallJob) => stages.flatMap(({ type }) => type ?? [])
  const insertCurrent = (jobs: readonly SmallJob[]) => withoutStale(jobs, typesOf, insertAll)
  const rowsOf = ({ stages }: SmallJob) => stages.reduce((sum, { tasks }) => sum + 1 + tasks.length, 1)
  return mergeCalls(insertCurrent, { concurrentRuns: 1, maxSize: maxRowsPerStatement, sizeOf: rowsOf })
}

/** The queues in which tasks can be claimed once the job is inserted. */
export function queuesOfOpenStages({ stages }: SmallJob): string[] {
  return stages.flatMap(({ name, plan, state }) =>
    state === 'pending' ? [queueOfStage({ name, plan: JSON.parse(plan) as StageReadRow['plan'] })] : [],
  )
}

/** The job as it was inserted at this time. Its rows need not be read again. */
export function viewOfSmallJob(job: SmallJob, now: Date): JobView {
  const { plan, state } = job
  const { deadlineSeconds } = plan
  const { input, metadata } = JSON.parse(JSON.stringify({ input: plan.input, metadata: plan.metadata }))
  const started = state === 'pending'
  const row: Omit<JobReadRow, 'n'> = {
    id: job.id,
    name: plan.name,
    state,
    round: 1,
    seq: started ? 2 : 1,
    priority: plan.priority,
    open: plan.open,
    plan,
    endsAs: null,
    endsCause: null,
    compensated: false,
    correlationId: plan.correlationId,
    traceparent: plan.traceparent,
    metadata,
    input,
    clonedFrom: null,
    deadlineAt: started && deadlineSeconds !== null ? new Date(now.getTime() + deadlineSeconds * 1000) : null,
    createdAt: now,
    changedAt: now,
    startedAt: null,
    endedAt: null,
  }
  return toJobView(
    row,
    job.stages.map((stage, ordinal) => stageRow(job.id, stage, ordinal, now)),
  )
}

function stageRow(jobId: string, stage: SmallStage, ordinal: number, now: Date): StageReadRow {
  const plan = JSON.parse(stage.plan) as StageReadRow['plan']
  const { id, name, state, open } = stage
  return {
    id,
    jobId,
    name,
    ordinal,
    kind: 'work',
    state,
    round: 1,
    seq: state === 'pending' ? 2 : 1,
    plan,
    open,
    total: stage.tasks.length,
    good: 0,
    bad: 0,
    partial: 0,
    skipped: 0,
    endsAs: null,
    endsCause: null,
    held: false,
    given: [],
    queue: queueOfStage({ name, plan }),
    output: null,
    error: null,
    gateUntil: null,
    calledOffFrom: null,
    metadata: plan.metadata,
    createdAt: now,
    changedAt: now,
    startedAt: null,
    endedAt: null,
  }
}

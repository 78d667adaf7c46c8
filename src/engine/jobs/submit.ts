/** Submits jobs. A large job is written in batches in state `created`, then made visible by one statement. */
import { ownQueueOf } from '../../kernel/datum.ts'
import { newId } from '../../kernel/id.ts'
import type { JobPlan, StagePlan } from '../../kernel/plan.ts'
import { Problem } from '../../kernel/problem.ts'
import { callFields } from '../../protocol/call-options.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import { tracer } from '../../protocol/tracing.ts'
import type { JobSpec } from '../../spec/job-spec.ts'
import { type NamedJob, parseJobSpec } from '../../spec/parse-job-spec.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { insertJobs, type SmallJob } from '../../store/jobs/insert-jobs.ts'
import { insertJob, insertStages, type NewStage, touchSubmission } from '../../store/jobs/new-job.ts'
import { reserveIds } from '../../store/tasks/idempotency.ts'
import { checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { checkFiles } from '../files/file-rules.ts'
import { demandQueues, queuesIn } from '../queue-scope.ts'
import { inProducerSpan, throwIdTaken } from '../tasks/enqueue.ts'
import { checkBeforehand, checkRegistered, insertChecked, type NewPayloads } from '../tasks/payload-checks.ts'
import { transact, type UnitCall } from '../unit-of-work.ts'
import { advanceInTransaction, advanceJob } from './advance-job.ts'
import type { LockedJob } from './locked-job.ts'
import { readJob } from './read-jobs.ts'
import { asSmallJob, queuesOfOpenStages, viewOfSmallJob } from './small-jobs.ts'
import {
  checkPayloads,
  chosenTaskIds,
  copyDoneTasks,
  payloadsOf,
  type StageToWrite,
  tasksPerBatch,
  writeTasks,
} from './write-tasks.ts'

/** Submits a job, all or nothing. `queues`: the only ones the job may use; null: any. */
export async function submitJob(
  context: Context,
  spec: JobSpec | NamedJob | string,
  call: UnitCall = {},
  queues: readonly string[] | null = null,
): Promise<JobView> {
  checkOptions(call, callFields, 'call')
  const { traceparent, ...parsed } = parseJobSpec(spec, context.pipelines)
  const plan = { ...parsed, traceparent: traceparent ?? call.traceparent ?? null }
  demandQueues(queues, queuesIn(plan.stages))
  for (const stage of plan.stages) checkFiles(context, stage)
  const stages = plan.stages.map(stage => ({ plan: stage, tasks: checkPayloads(context, stage) }))
  await checkRegistered(context.types.known, payloadsOf(stages))
  const write = (traced: JobPlan) => writeJob(context, traced, stages, call, ['submit', spec], null)
  const tracing = tracer()
  if (tracing === undefined || plan.traceparent !== null) return write(plan)
  const span = { name: 'submit', to: plan.name } as const
  return inProducerSpan(tracing, span, { 'pawl.job.name': plan.name }, async (traceparent, span) => {
    const job = await write({ ...plan, traceparent: traceparent ?? null })
    span.setAttribute('pawl.job.id', job.id)
    return job
  })
}

/**
 * Expects validated input. A small job is one transaction. A large job stays hidden until it is complete. A job with an
 * idempotency key or with caller-chosen ids is always one transaction, however large: a concurrent request for the same
 * job waits and finds it complete, and an interrupted one leaves nothing that uses the id.
 */
export async function writeJob(
  context: Context,
  plan: JobPlan,
  stages: readonly StageToWrite[],
  call: UnitCall,
  request: unknown,
  clonedFrom: string | null,
): Promise<JobView> {
  const actor = call.actor ?? 'producer'
  const sql = context.sqlFor(call.tx)
  const id = plan.id ?? newId()
  const made = stages.map((stage, ordinal) => newStage(stage.plan, ordinal, stage.tasks.length, plan.start, stage.id))
  const size = stages.reduce((sum, { tasks, carried = [] }) => sum + tasks.length + carried.length, 0)
  const write = async (tx: Sql) => {
    await insertJob(tx, { id, plan: withoutStages(plan), clonedFrom }, actor).catch(throwIdTaken)
    if (plan.id !== undefined) await reserveIds(tx, [id]).catch(throwIdTaken)
    await insertStages(tx, { id, priority: plan.priority, plan }, made, actor)
  }
  const withTasks = made.map((stage, index) => ({ ...stages[index]!, ...stage }))
  // A clone repeats payloads that were accepted before.
  const schemas = clonedFrom === null ? context.types.schemas : null
  const fill = async (sql: Sql, beforeBatch?: () => Promise<void>) => {
    await writeTasks({ sql, schemas, actor, beforeBatch }, { ...plan, id }, withTasks)
    if (clonedFrom !== null) await copyDoneTasks(sql, clonedFrom, { ...plan, id }, withTasks, actor)
  }
  const chosenIds = [plan.id, ...chosenTaskIds(withTasks)].filter(chosen => chosen !== undefined)
  const small = clonedFrom === null ? asSmallJob(id, withoutLargeInput(plan), withTasks, actor) : undefined
  if (small !== undefined) return writeSmallJob(context, small, payloadsOf(withTasks), chosenIds, call, request)
  if (size <= tasksPerBatch || sql.isTransaction || call.idempotencyKey !== undefined || chosenIds.length > 0) {
    return transact(context, call, request, async (tx, after) => {
      await write(tx)
      await fill(tx)
      await advanceInTransaction(context, tx, after, id, actor, locked => makeVisible(locked, plan))
      return readJob({ ...context, sql: tx }, id)
    })
  }
  const keepSubmitting = async () => {
    if (!(await touchSubmission(sql, id))) throw new Problem('SUBMIT_CUT_OFF')
  }
  if (schemas !== null) await checkBeforehand(schemas, sql, payloadsOf(withTasks))
  await sql.begin(write)
  await fill(sql, keepSubmitting)
  await keepSubmitting()
  await advanceJob(context, id, actor, locked => makeVisible(locked, plan))
  return readJob(context, id)
}

/** A job that needs no transaction of its own is written together with others. */
async function writeSmallJob(
  context: Context,
  job: SmallJob,
  payloads: NewPayloads,
  chosenIds: readonly string[],
  call: UnitCall,
  request: unknown,
): Promise<JobView> {
  const checked = (sql: Sql, insert: (job: SmallJob) => Promise<Date>) =>
    insertChecked(context.types.schemas, sql, payloads, payloadVersions => insert({ ...job, payloadVersions }))
  if (call.tx === undefined && call.idempotencyKey === undefined && chosenIds.length === 0) {
    context.sql.checkTurn()
    return viewOfSmallJob(job, await checked(context.sql, context.insertSmallJob))
  }
  return transact(context, call, request, async (tx, after) => {
    const now = await checked(tx, job => insertJobs(tx, [job])).catch(throwIdTaken)
    await reserveIds(tx, chosenIds).catch(throwIdTaken)
    after.addQueues(queuesOfOpenStages(job))
    return viewOfSmallJob(job, now)
  })
}

/**
 * Creates a job from another one. With an idempotency key, the other job is read in the key's transaction, so a
 * repeated request gets the first answer even if the other job has changed.
 */
export function makeJobOnce<Call extends UnitCall>(
  context: Context,
  call: Call,
  request: unknown,
  make: (call: Omit<Call, 'idempotencyKey' | 'holder' | 'asked'>) => Promise<JobView>,
): Promise<JobView> {
  if (call.idempotencyKey === undefined) return make(call)
  const { idempotencyKey: _, holder: _holder, asked: _asked, ...rest } = call
  return transact(context, call, request, tx => make({ ...rest, tx }))
}

/** Makes the job visible, and starts it unless `start` is false. */
function makeVisible(locked: LockedJob, plan: JobPlan): void {
  locked.setJob({ visible: true })
  for (const stage of locked.stages) locked.touchLane(stage)
  if (plan.start) startJob(locked, 'submitted')
}

/** Moves the job from created to pending. Its deadline counts from here. */
export function startJob(locked: LockedJob, cause: string): void {
  locked.moveJob({ to: 'pending', cause }, { deadlineAt: deadlineOf(locked) })
}

export function deadlineOf({ job }: LockedJob): string | null {
  const { deadlineSeconds } = job.plan
  return deadlineSeconds === null ? null : new Date(job.now.getTime() + deadlineSeconds * 1000).toISOString()
}

/** `startsNow`: tasks of stages without needs, condition or gate are queued at once and never blocked. */
export function newStage(
  plan: StagePlan,
  ordinal: number,
  tasks: number,
  startsNow: boolean,
  id: string = newId(),
): NewStage {
  const isReady = startsNow && plan.needs.length === 0 && plan.when === null && plan.gate === null
  const counts = { total: tasks, blocked: isReady ? 0 : tasks }
  const own = plan.files?.runner?.kind === 'kubernetes' && plan.queue === null ? { queue: ownQueueOf(id) } : {}
  return { id, ordinal, kind: 'work', undoes: null, plan: { ...plan, ...own }, open: plan.open, fan: null, ...counts }
}

function withoutStages({ stages: _, id: _id, ...plan }: JobPlan): Omit<JobPlan, 'stages'> {
  return plan
}

function withoutLargeInput(plan: JobPlan): JobPlan {
  if (JSON.stringify(plan.input ?? null).length > 10_000_000) throw new Problem('PAYLOAD_TOO_LARGE', { at: 'input' })
  return plan
}

/** Submits jobs. Where one is large it is written under `created`, in batches, and becomes visible by one statement. */
import { ownQueueOf } from '../../kernel/datum.ts'
import { newId } from '../../kernel/id.ts'
import type { JobPlan, StagePlan } from '../../kernel/plan.ts'
import { Problem } from '../../kernel/problem.ts'
import { callFields } from '../../protocol/fields.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import { tracer } from '../../protocol/tracing.ts'
import type { JobSpec } from '../../spec/job-spec.ts'
import type { NamedJob } from '../../spec/named-job.ts'
import { parseJobSpec } from '../../spec/parse-job-spec.ts'
import type { Sql } from '../../store/driver/sql.ts'
import {
  insertJob,
  insertStages,
  type NewStage,
  stagesPerStatement,
  touchSubmission,
} from '../../store/jobs/new-job.ts'
import { insertStageTasks, type JobOfTasks, type StageTask, type StageTasks } from '../../store/jobs/stage-tasks.ts'
import { reserveIds } from '../../store/tasks/chosen-ids.ts'
import { checkedJson, checkOptions } from '../check.ts'
import type { CallerTransaction, Context } from '../context.ts'
import { checkFiles } from '../files/file-rules.ts'
import { demandQueues, queuesIn } from '../key-queues.ts'
import type { Idempotency } from '../once.ts'
import { idTaken } from '../tasks/id-taken.ts'
import { produced } from '../trace.ts'
import { transact } from '../unit-of-work.ts'
import { type Carried, carryOver } from './carry-over.ts'
import { driveJob, driveOnce } from './drive.ts'
import type { JobBook } from './locked-job.ts'
import { readJob } from './read-jobs.ts'

export interface SubmitCall extends Idempotency {
  /** Submit in this transaction: the job is there when it commits, and never was if it does not. */
  readonly tx?: CallerTransaction
  readonly actor?: string
  /** For a job that brings none of its own. */
  readonly traceparent?: string
}

const tasksPerBatch = 5000

/** Submits a job: all of it or nothing. `queues`: the only ones that it may use. */
export async function submitJob(
  context: Context,
  spec: JobSpec | NamedJob | string,
  call: SubmitCall = {},
  queues: readonly string[] | null = null,
): Promise<JobView> {
  checkOptions(call, callFields, 'call')
  const { traceparent, ...said } = parseJobSpec(spec, context.pipelines)
  const plan = { ...said, traceparent: traceparent ?? call.traceparent ?? null }
  demandQueues(queues, queuesIn(plan.stages))
  for (const stage of plan.stages) checkFiles(context, stage)
  const stages = plan.stages.map(stage => ({ plan: stage, tasks: checkPayloads(context, stage) }))
  const write = (traced: JobPlan) => writeJob(context, traced, stages, call, ['submit', spec], null)
  const tracing = tracer()
  if (tracing === undefined || plan.traceparent !== null) return write(plan)
  const what = { name: 'submit', to: plan.name } as const
  return produced(tracing, what, { 'pawl.job.name': plan.name }, async (traceparent, span) => {
    const job = await write({ ...plan, traceparent: traceparent ?? null })
    span.setAttribute('pawl.job.id', job.id)
    return job
  })
}

/** Of the type of its stage, unless it brings its own. */
export type TaskToWrite = Pick<StageTask, 'payload' | 'own'> & Partial<Pick<StageTask, 'type'>>

export interface StageToWrite {
  /** Default: a new one. */
  readonly id?: string
  readonly plan: StagePlan
  readonly tasks: readonly TaskToWrite[]
  /** Of a clone: what it has, and need not do. */
  readonly carried?: readonly Carried[]
}

/**
 * Everything has been checked. A small job is one transaction; a large one is hidden until it is whole. One with a key
 * or with ids that its caller chose is one transaction too, however large: whoever submits the same at once waits for
 * it and finds it whole, and one that is cut off leaves nothing that has the id.
 */
export async function writeJob(
  context: Context,
  plan: JobPlan,
  stages: readonly StageToWrite[],
  call: SubmitCall,
  request: unknown,
  clonedFrom: string | null,
): Promise<JobView> {
  const actor = call.actor ?? 'producer'
  const sql = context.within(call.tx)
  const id = plan.id ?? newId()
  const size = stages.reduce((sum, { tasks, carried = [] }) => sum + tasks.length + carried.length, 0)
  const write = async (tx: Sql) => {
    await insertJob(tx, { id, plan: withoutStages(plan), clonedFrom }, actor).catch(idTaken)
    if (plan.id !== undefined) await reserveIds(tx, [id]).catch(idTaken)
    const made = stages.map((stage, ordinal) => newStage(stage.plan, ordinal, stage.tasks.length, plan.start, stage.id))
    await insertStages(tx, { id, priority: plan.priority, plan }, made, actor)
    return made.map((stage, index) => ({ ...stages[index]!, ...stage }))
  }
  const fill = async (sql: Sql, made: Awaited<ReturnType<typeof write>>, beforeBatch?: () => Promise<void>) => {
    await writeTasks(sql, { ...plan, id }, made, actor, beforeBatch)
    if (clonedFrom !== null) await carryOver(sql, clonedFrom, { ...plan, id }, made, actor)
  }
  const choosesIds = plan.id !== undefined || plan.stages.some(({ taskId }) => taskId !== undefined)
  if (size <= tasksPerBatch || sql.isTransaction || call.idempotencyKey !== undefined || choosesIds) {
    return transact(context, call, request, async (tx, after) => {
      await fill(tx, await write(tx))
      await driveOnce(tx, after, id, actor, book => show(book, plan))
      return readJob({ ...context, sql: tx }, id)
    })
  }
  const goOn = async () => {
    if (!(await touchSubmission(sql, id))) throw new Problem('SUBMIT_CUT_OFF')
  }
  await fill(sql, await sql.begin(write), goOn)
  await goOn()
  await driveJob(context, id, actor, book => show(book, plan))
  return readJob(context, id)
}

/**
 * Makes a job after reading another one. With an idempotency key the read is part of the key's transaction, so that a
 * repeated request gets the first answer, however the other job has changed.
 */
export function submitUnderKey<Call extends SubmitCall>(
  context: Context,
  call: Call,
  request: unknown,
  make: (call: Omit<Call, 'idempotencyKey' | 'holder' | 'asked'>) => Promise<JobView>,
): Promise<JobView> {
  if (call.idempotencyKey === undefined) return make(call)
  const { idempotencyKey: _, holder: _holder, asked: _asked, ...rest } = call
  return transact(context, call, request, tx => make({ ...rest, tx }))
}

/** From now on it is seen, and runs if it is to start at once. */
function show(book: JobBook, plan: JobPlan): void {
  book.setJob({ visible: true })
  for (const stage of book.stages) book.touch(stage)
  if (plan.start) startJob(book, 'submitted')
}

/** Created → pending. Its deadline counts from here. */
export function startJob(book: JobBook, cause: string): void {
  book.moveJob({ to: 'pending', cause }, { deadlineAt: deadlineOf(book) })
}

export function deadlineOf({ job }: JobBook): string | null {
  const { deadlineSeconds } = job.plan
  return deadlineSeconds === null ? null : new Date(job.now.getTime() + deadlineSeconds * 1000).toISOString()
}

/** The tasks that stages are declared with, in batches; the stages were written with their number. */
export async function writeTasks(
  sql: Sql,
  job: JobOfTasks,
  stages: readonly (NewStage & { tasks: readonly TaskToWrite[] })[],
  actor: string,
  beforeBatch: () => Promise<void> = async () => {},
): Promise<void> {
  let batch: StageTasks[] = []
  let size = 0
  const write = async () => {
    await beforeBatch()
    await insertStageTasks(sql, job, batch, actor).catch(idTaken)
    batch = []
    size = 0
  }
  for (const { id: stageId, plan, tasks: wanted, blocked } of stages) {
    for (let from = 0; from < wanted.length; ) {
      const some = wanted.slice(from, from + tasksPerBatch - size)
      const tasks = some.map(task => ({ type: plan.task!, ...task, id: plan.taskId ?? newId() }))
      batch.push({ stageId, state: blocked > 0 ? 'blocked' : 'queued', settings: plan.settings, tasks })
      size += some.length
      from += some.length
      if (size === tasksPerBatch || batch.length === stagesPerStatement) await write()
    }
  }
  await write()
  const chosen = stages.flatMap(({ plan: { taskId }, tasks }) => (taskId && tasks.length > 0 ? [taskId] : []))
  await reserveIds(sql, chosen).catch(idTaken)
}

/** `startsNow`: what it needs nobody for is queued from the start, and need not be blocked first. */
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

export function checkPayloads(context: Context, { payloads, name }: StagePlan): TaskToWrite[] {
  return payloads.map((payload, index) => ({
    payload: checkedJson(payload, context.maxPayloadBytes, `stages.${name}.payloads[${index}]`),
  }))
}

function withoutStages({ stages: _, id: _id, ...plan }: JobPlan): Omit<JobPlan, 'stages'> {
  if (JSON.stringify(plan.input ?? null).length > 10_000_000) throw new Problem('PAYLOAD_TOO_LARGE', { at: 'input' })
  return plan
}

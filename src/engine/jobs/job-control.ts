/** Operator requests on jobs. Each runs under the job's lock and advances the job in the same transaction. */
import { type JobMove, jobLifecycle } from '../../kernel/job.ts'
import { isFinal, mayMove, movesOpenTo } from '../../kernel/lifecycle.ts'
import { Problem } from '../../kernel/problem.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import { type CancelCall, cancelFields, controlFields } from '../../protocol/call-options.ts'
import type { Added, AddedStage, JobView } from '../../protocol/jobs/jobs.ts'
import { priority as priorityField } from '../../schema/fields.ts'
import type { JobSpec, StageSpec } from '../../spec/job-spec.ts'
import { parseJobSpec } from '../../spec/parse-job-spec.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { setLanePriority } from '../../store/flow/lanes.ts'
import { readStages, type StageRow } from '../../store/jobs/jobs.ts'
import { insertStages } from '../../store/jobs/new-job.ts'
import { bytesOfStages } from '../../store/jobs/read-jobs.ts'
import { checkId, checkOptions, isObject } from '../check.ts'
import type { Context } from '../context.ts'
import { checkFiles } from '../files/file-rules.ts'
import { type ControlCall, reasonOf, requireState } from '../tasks/control.ts'
import { checkRegistered } from '../tasks/payload-checks.ts'
import { transact, type UnitCall } from '../unit-of-work.ts'
import { advanceInTransaction, advanceJob } from './advance-job.ts'
import type { LockedJob } from './locked-job.ts'
import { readJob } from './read-jobs.ts'
import { canRevive, reviveStages } from './revive.ts'
import { deadlineOf, newStage, startJob } from './submit.ts'
import { checkPayloads, payloadsOf, writeTasks } from './write-tasks.ts'

/** Starts a job that was submitted with `start: false`. */
export function start(context: Context, id: string, call: ControlCall = {}) {
  checkOptions(call, controlFields, 'start')
  return changeJob(context, id, call, ['start'], locked => {
    requireMove(locked, 'submit')
    startJob(locked, 'started')
  })
}

/** Stops claims. Tasks in progress may finish, and their results are recorded. */
export function pause(context: Context, id: string, call: ControlCall = {}) {
  checkOptions(call, controlFields, 'pause')
  return changeJob(context, id, call, ['pause'], locked => {
    requireMove(locked, 'pause')
    locked.moveJob({ to: 'paused', cause: 'pause', payload: reasonOf(call) })
  })
}

/** Resumes a paused job, or opens the next round of one that ended badly. */
export function resume(context: Context, id: string, call: ControlCall = {}) {
  checkOptions(call, controlFields, 'resume')
  return changeJob(context, id, call, ['resume'], locked => {
    if (locked.job.state !== 'paused') return reviveAll(locked, 'resume')
    locked.moveJob({ to: locked.job.begun ? 'running' : 'pending', cause: 'resume', payload: reasonOf(call) })
  })
}

/** Cancels a job. Soft: workers are asked to stop, and their tasks may still finish. Hard: leases end at once. */
export function cancel(context: Context, id: string, call: CancelCall & UnitCall = {}) {
  checkOptions(call, cancelFields, 'cancel')
  const { mode = 'soft', reason } = call
  return changeJob(context, id, call, ['cancel', mode, reason], locked => {
    requireMove(locked, 'cancel')
    const { state } = locked.job
    locked.moveJob({ to: state, type: 'job.cancel_requested', cause: 'cancel', payload: { mode, ...reasonOf(call) } })
    if (locked.job.endsAs === null) locked.setJob({ endsAs: 'cancelled', endsCause: reason ?? 'cancel' })
    if (mode === 'hard') cancelHard(locked)
  })
}

/** Turns a soft cancellation of the stages into a hard one. */
function cancelHard(locked: LockedJob): void {
  for (const stage of locked.stages) {
    if (isFinal(stageLifecycle, stage.state) || stage.kind === 'undo') continue
    locked.decideStageEnd(stage, stage.endsAs ?? 'cancelled', stage.endsCause ?? locked.job.endsCause ?? 'cancel', {
      endsHard: true,
    })
  }
}

/** Opens the next round: tasks that did not succeed run again, and successful ones are kept. */
export function retry(context: Context, id: string, call: ControlCall = {}) {
  checkOptions(call, controlFields, 'retry')
  return changeJob(context, id, call, ['retry'], locked => reviveAll(locked, 'retry'))
}

function reviveAll(locked: LockedJob, cause: string): void {
  requireMove(locked, 'revive')
  reviveStages(locked, locked.stages.filter(canRevive), cause)
}

/** Changes the job's priority, also for tasks that are already queued. */
export function setPriority(context: Context, id: string, priority: number, call: ControlCall = {}) {
  checkOptions(call, controlFields, 'priority')
  checkOptions({ priority }, { priority: priorityField }, 'priority')
  return changeJob(context, id, call, ['priority', priority], (locked, tx) => changePriority(locked, tx, priority))
}

export async function changePriority(locked: LockedJob, tx: Sql, priority: number): Promise<void> {
  const { id, state, priority: before } = locked.job
  const payload = { before, priority }
  locked.moveJob({ to: state, type: 'job.priority_changed', cause: 'priority', payload }, { priority })
  await setLanePriority(tx, id, priority)
}

/** Closes the job to additions. It ends when all its stages have ended. */
export function seal(context: Context, id: string, call: ControlCall = {}) {
  checkOptions(call, controlFields, 'seal')
  return changeJob(context, id, call, ['seal'], locked => {
    if (locked.job.open === 'sealed') return
    locked.moveJob(
      { to: locked.job.state, type: 'job.sealed', cause: 'seal', payload: reasonOf(call) },
      { open: 'sealed' },
    )
  })
}

/** Adds stages to an open job. They may need existing stages. By default they need the last one. */
export async function addStages(
  context: Context,
  id: string,
  stages: readonly AddedStage[],
  call: ControlCall = {},
): Promise<JobView & Added> {
  checkOptions(call, controlFields, 'stages')
  const jobId = checkId(id, 'JOB_NOT_FOUND')
  const fingerprint = ['job', jobId, 'stages', stages]
  const { view, result } = await changeJobWithResult(
    context,
    async () => jobId,
    call,
    fingerprint,
    (locked, tx) => {
      if (isFinal(jobLifecycle, locked.job.state)) throw moveRefused(locked.job, 'stages')
      const known = locked.stages.filter(({ kind }) => kind === 'work')
      const spec = { name: locked.job.name, stages: withNames(stages, known) }
      return addStagesTo(context, locked, tx, spec, call.actor ?? 'operator')
    },
  )
  return { ...view, added: result }
}

/** Names each unnamed stage after its task or queue, with a number if that name is taken. */
function withNames(stages: readonly AddedStage[], known: readonly { readonly name: string }[]): StageSpec[] {
  const taken = new Set([...known, ...stages].map(stage => stage?.name))
  return stages.map(stage => {
    const subject = stage?.task ?? stage?.queue
    if (!isObject(stage) || stage.name !== undefined || typeof subject !== 'string') return stage as StageSpec
    let name = subject
    for (let n = 2; taken.has(name); n++) name = `${subject} ${n}`
    taken.add(name)
    return { ...stage, name }
  })
}

/** Adds stages to the job with the spec's id. A job that was open until done and has succeeded runs again. */
export function addStagesFromSpec(context: Context, spec: JobSpec & { readonly id: string }, call: ControlCall) {
  const { actor = 'producer' } = call
  return changeJob(context, spec.id, { ...call, actor }, ['submit', spec], async (locked, tx) => {
    const { state, open } = locked.job
    const isExtended = open === 'untilDone' && mayMove(jobLifecycle, state, 'extend')
    if (isFinal(jobLifecycle, state) && !isExtended) throw moveRefused(locked.job, 'stages')
    const added = await addStagesTo(context, locked, tx, spec, actor)
    if (!isExtended || added.length === 0) return
    locked.reviveJob({ to: 'pending', cause: 'stages_added' }, { begun: false, deadlineAt: deadlineOf(locked) })
  })
}

/** Maximum size of the plans, metadata and approvals of all stages of a job: every view of the job shows them. */
export const maxJobBytes = 32 * 2 ** 20

/** Throws if the stages of a job would have become too large with this many more bytes. */
export async function requireRoomInJob(tx: Sql, jobId: string, more = 0): Promise<void> {
  const bytes = (await bytesOfStages(tx, jobId)) + more
  if (bytes > maxJobBytes) throw new Problem('PAYLOAD_TOO_LARGE', { at: 'stages', bytes, limit: maxJobBytes })
}

async function addStagesTo(
  context: Context,
  locked: LockedJob,
  tx: Sql,
  spec: JobSpec,
  actor: string,
): Promise<string[]> {
  const { job } = locked
  if (job.endsAs !== null) throw moveRefused(locked.job, 'stages')
  if (job.open === 'sealed') throw new Problem('SEALED', { job: job.id })
  const known = locked.stages.filter(({ kind }) => kind === 'work')
  const knownSpecs = known.map(specOfStage)
  const { leaseSeconds: _, ...given } = spec
  const { leaseSeconds } = job.plan
  const plan = parseAdded({ ...given, ...(leaseSeconds !== undefined && { leaseSeconds }) }, knownSpecs)
  const last = Math.max(-1, ...locked.stages.map(({ ordinal }) => ordinal))
  const added = plan.stages.slice(known.length)
  const made = added.map((stage, index) => {
    checkFiles(context, stage)
    const tasks = checkPayloads(context, stage)
    return { ...newStage(stage, last + 1 + index, tasks.length, false), tasks }
  })
  await checkRegistered(context.types.known, payloadsOf(made))
  await insertStages(tx, job, made, actor)
  await requireRoomInJob(tx, job.id)
  await writeTasks({ sql: tx, schemas: context.types.schemas, actor }, job, made)
  const ids = made.map(stage => stage.id)
  const rows = (await readStages(tx, job.id)).filter(stage => ids.includes(stage.id))
  locked.stages.push(...rows)
  return ids
}

/** Returns only the parts of an existing stage that added stages may refer to. */
function specOfStage({ name, plan: { task, needs, files } }: StageRow): StageSpec {
  const { outputs = null } = files ?? {}
  const does = files !== undefined ? { run: { command: ['true'] } } : task === null ? { open: true } : { task }
  return { name, needs: [...needs], ...does, ...(outputs !== null && { outputs }) }
}

/** Validates the new stages together with the existing ones. Positions in problems refer to the new stages. */
function parseAdded(spec: JobSpec, known: readonly StageSpec[]) {
  const { stages: added = [] } = spec
  try {
    return parseJobSpec({ ...spec, stages: Array.isArray(added) ? [...known, ...added] : added })
  } catch (error) {
    if (!(error instanceof Problem) || !Array.isArray(error.details.issues)) throw error
    const issues = error.details.issues.map((issue: { at: string }) => ({
      ...issue,
      at: issue.at.replace(/^stages\[(\d+)\]/, (_, index) => `stages[${Number(index) - known.length}]`),
    }))
    throw new Problem('SPEC_INVALID', { ...error.details, issues })
  }
}

/** Changes one job, all or nothing and once per idempotency key. Returns the job afterwards. */
export async function changeJob(
  context: Context,
  id: string,
  call: ControlCall,
  fingerprint: readonly unknown[],
  change: (locked: LockedJob, tx: Sql) => Promise<void> | void,
): Promise<JobView> {
  const jobId = checkId(id, 'JOB_NOT_FOUND')
  const find = async () => jobId
  return (await changeJobWithResult(context, find, call, ['job', jobId, ...fingerprint], change)).view
}

/**
 * Like `changeJob`, for the job that `find` returns, and with the result of `change`. `find` runs under the idempotency
 * key, so a repeated request gets its answer even after the job has been deleted.
 */
export async function changeJobWithResult<T>(
  context: Context,
  find: (sql: Sql) => Promise<string>,
  call: ControlCall,
  fingerprint: readonly unknown[],
  change: (locked: LockedJob, tx: Sql) => Promise<T> | T,
): Promise<{ view: JobView; result: T }> {
  const actor = call.actor ?? 'operator'
  const checked = (locked: LockedJob, tx: Sql) => {
    if (!locked.job.visible) throw new Problem('JOB_NOT_FOUND', { id: locked.job.id })
    requireState(call, locked.job.state, { job: locked.job.id })
    return change(locked, tx)
  }
  // Without an idempotency key, the answer shows the job after all follow-up work. With a key, the answer must be
  // stored together with the change.
  if (call.tx === undefined && call.idempotencyKey === undefined) {
    const jobId = await find(context.sql)
    const result = await advanceJob(context, jobId, actor, checked)
    return { view: await readJob(context, jobId), result }
  }
  return transact(context, call, fingerprint, async (tx, after) => {
    const jobId = await find(tx)
    const result = await advanceInTransaction(context, tx, after, jobId, actor, checked)
    return { view: await readJob({ sql: tx }, jobId), result }
  })
}

function requireMove(locked: LockedJob, move: JobMove): void {
  if (!mayMove(jobLifecycle, locked.job.state, move)) throw moveRefused(locked.job, move)
}

export function moveRefused({ id, state }: Pick<JobView, 'id' | 'state'>, move: string): Problem {
  const possible = movesOpenTo(jobLifecycle, state, 'operator')
  return new Problem('MOVE_REFUSED', { job: id, state, move, possible })
}

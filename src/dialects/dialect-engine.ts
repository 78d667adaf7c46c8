/**
 * The engine as a dialect sees it. Every call checks the roles and queues of the key by the rules of Pawl's own routes,
 * so no dialect can do more than they allow.
 */
import type { Engine, Internals } from '../engine/engine.ts'
import { type Caller, type EngineMethods, run } from '../engine/operations.ts'
import { demandPermission, demandQueues, demandScope } from '../engine/queue-scope.ts'
import type { Reports } from '../engine/tasks/merge-reports.ts'
import { artifacts, reportFiles, settleOne, take } from '../engine/tasks/one-task.ts'
import { may, type Permission } from '../kernel/role.ts'
import type { KeyView } from '../protocol/admin/admin.ts'
import type { ArtifactView, ReportedArtifact } from '../protocol/files/artifacts.ts'
import type { JobView } from '../protocol/jobs/jobs.ts'
import { namedOperations, type OperationName, operations } from '../protocol/operations.ts'
import {
  type ClaimsRequest,
  type HeldTask,
  leaseOf,
  type OneOutcome,
  type ReportOf,
  type SyncRequest,
} from '../protocol/tasks/sync.ts'
import type { TaskView } from '../protocol/tasks/tasks.ts'
import type { Call } from './dialect.ts'
import { unlessProblem } from './kit/refusals.ts'
import { type KnownLease, knownTo, leaseOfTask, rememberFiles } from './known-leases.ts'
import { leasesOf } from './leases-of-request.ts'

/**
 * Left out: dialects find the epoch of a lease themselves, so knowing it proves nothing. They report as below instead.
 */
const operationsByEpoch = [
  'sync',
  'start',
  'heartbeat',
  'succeed',
  'fail',
  'skip',
  'release',
  'cancelled',
] as const satisfies readonly OperationName[]

/** Internal use cases that only read, and so need the permission `read`. */
const readingInternals = [
  'countsByState',
  'countTasks',
  'deepestQueues',
  'inputsFound',
  'reasonsOf',
  'taskCounts',
  'totals',
] as const satisfies readonly (keyof Internals)[]

/** The key of a request. A client without one may do everything: it runs on the same machine. */
interface Identity extends Pick<KeyView, 'roles' | 'queues'> {
  /** Id of the key; '': there is none. */
  readonly holder: string
}

export type DialectEngine = ReturnType<typeof engineFor>

export function engineFor({ engine, reports }: { engine: Engine; reports: Reports }, identity: Identity) {
  const { context, internals } = engine
  const caller: Caller = { context, queues: identity.queues, holder: identity.holder, reports }
  const known = knownTo(engine)
  const leases = leasesOf(engine, identity)
  const needs = (permission: Permission | readonly Permission[]) => demandPermission(identity.roles, permission)
  const demandQueue = (queues: readonly unknown[]) => demandQueues(identity.queues, queues)
  const checked = checkedMethods(caller, needs)
  /** A task that the key has claimed is visible without the permission to read others. */
  const needsToSee = (id: string) => {
    if (!leases.knows(id)) needs('read')
  }
  /**
   * Does something under a lease that this process has handed out, without reading it. Returns undefined if there is
   * none that fits, or if it is lost: then the caller reads the task.
   */
  async function underKnownLease<Result>(
    id: string,
    work: (lease: KnownLease) => Promise<Result>,
    fits: (lease: KnownLease) => boolean = () => true,
  ): Promise<Result | undefined> {
    const lease = known.leases.get(id)
    if (lease === undefined || lease.holder !== identity.holder || !fits(lease)) return undefined
    needs('work')
    demandQueue([lease.queue])
    return unlessProblem<Result | undefined>(
      ['LEASE_LOST'],
      () => work(lease),
      () => known.leases.forget(id),
    )
  }
  const settleKnown = <Outcome extends OneOutcome>(
    outcome: Outcome,
    { id, epoch }: KnownLease,
    report: ReportOf<Outcome>,
  ) => {
    known.leases.forget(id)
    return settleOne(context, outcome, id, epoch, report, { queues: identity.queues, onlyFirst: true })
  }
  /**
   * Ends an attempt that this key has claimed: under a lease that this process knows, or under an epoch. Without an epoch,
   * it is the attempt that is running.
   */
  const settling =
    <Outcome extends OneOutcome>(outcome: Outcome) =>
    async (
      id: string,
      under: number | KnownLease | null,
      report: ReportOf<Outcome> = {} as ReportOf<Outcome>,
    ): Promise<TaskView> => {
      needs('work')
      if (under !== null && typeof under === 'object') return settleKnown(outcome, under, report)
      const epoch = under
      const ended = epoch === null ? await underKnownLease(id, lease => settleKnown(outcome, lease, report)) : undefined
      if (ended !== undefined) return ended
      const task = await leases.demand(id, epoch)
      return settleOne(context, outcome, id, epoch, report, {
        queues: identity.queues,
        ...(task !== undefined && { task }),
      })
    }
  const underLease = async ({ id, epoch }: HeldTask) => {
    needs('work')
    await leases.demand(id, epoch)
  }
  const holder = identity.holder === '' ? {} : { holder: identity.holder }
  return {
    ...checked,
    ...readingMethods(engine, needs),
    async task(id: string) {
      needsToSee(id)
      return run.task(caller, id)
    },
    async attempts(id: string) {
      needsToSee(id)
      return run.attempts(caller, id)
    },
    /** The database's clock in milliseconds. */
    clock: () => internals.clock(),
    /** Resolves if the store accepts writes. */
    ready: () => engine.ready(),
    /** Whether jobs can be submitted by this name. */
    hasPipeline: (name: string) => Object.hasOwn(context.pipelines, name),
    /** The figures that this process counts about itself. */
    figures() {
      needs('read')
      return context.metrics
    },
    follow(...[query, options]: Parameters<Engine['follow']>) {
      needs(operations.events.permission)
      return engine.follow(query, options)
    },
    /** Creates a job from what did not succeed in this one, which stays unchanged: so a producer may do it. */
    async cloneJob(id: string, call: Call & { readonly name: string }) {
      needs(operations.submit.permission)
      if (identity.queues !== null) demandQueue((await run.job(caller, id)).stages.map(({ queue }) => queue))
      return run.retryJob(caller, id, { ...call, clone: true })
    },
    async setJobPriority(id: string, priority: number, call: Call) {
      needs(operations.patchJob.permission)
      return internals.setJobPriority(id, priority, call)
    },
    /** For operators, and for producers whose key includes the queues of the job. */
    async replaceJobMetadata(id: string, metadata: Metadata, call: Call) {
      needs(['operate', 'produce'])
      if (identity.queues !== null) demandQueue((await run.job(caller, id)).stages.map(({ queue }) => queue))
      return run.patchJob(caller, id, { metadata, replace: true }, call)
    },
    /** For operators, and for producers whose key includes the queue of the stage. */
    async replaceStageMetadata(id: string, metadata: Metadata, call: Call) {
      needs(['operate', 'produce'])
      if (identity.queues !== null) demandQueue([(await run.stage(caller, id)).queue])
      return run.patchStage(caller, id, { metadata, replace: true }, call)
    },
    /** For operators, and for workers whose key claimed the task. */
    async replaceTaskMetadata(id: string, metadata: Metadata, call: Call) {
      needs(['operate', 'work'])
      if (!may(identity.roles, 'operate')) await leases.find(id)
      return run.patchTask(caller, id, { metadata, replace: true }, call)
    },
    async claims(request: ClaimsRequest, call: Call, signal: AbortSignal) {
      const claimed = await checked.claims(request, { ...call, ...holder }, signal)
      for (const { id } of claimed) leases.learn(id)
      return claimed
    },
    /** Claims and starts tasks, and answers with the whole tasks. */
    async take(request: Omit<ClaimsRequest, 'start'>, call: Call, signal: AbortSignal) {
      needs(operations.claims.permission)
      await demandScope(caller, operations.claims, [request])
      const tasks = await take(context, request, { ...call, ...holder }, signal)
      for (const task of tasks) known.leases.set(task.id, leaseOfTask(task, identity.holder))
      return tasks
    },
    underKnownLease,
    /** Facts of a job, as they were when it was last read. `isFresh`: it has just been read. `fresh`: read it now. */
    async jobFacts<Facts>(id: string, derive: (job: JobView) => Facts, { fresh = false } = {}) {
      needs(operations.job.permission)
      const jobs = known.jobsBy(derive)
      const before = fresh ? undefined : jobs.get(id)
      if (before !== undefined) return { facts: before, isFresh: false }
      const job = await run.job(caller, id)
      const facts = derive(job)
      jobs.set(job.id, facts)
      return { facts, isFresh: true }
    },
    /**
     * A task that this key has claimed, now or before. Any other task is refused. Later reports do not read its claims
     * again.
     */
    async heldTask(id: string) {
      needs('work')
      return (await leases.find(id)).task
    },
    succeed: settling('succeeded'),
    fail: settling('failed'),
    release: settling('released'),
    /** Registers the complete set of the files of an attempt, and returns them. */
    async registerFiles(held: HeldTask | KnownLease, files: readonly ReportedArtifact[]): Promise<ArtifactView[]> {
      const { id, epoch } = held
      const isKnown = 'outputs' in held
      if (!isKnown) await underLease(held)
      const registered = await artifacts(
        context,
        id,
        epoch,
        { artifacts: files, whole: true },
        isKnown ? held.outputs : null,
      )
      if (isKnown) rememberFiles(held, registered)
      return registered
    },
    async reportFiles(held: HeldTask | KnownLease, files: readonly ReportedArtifact[]): Promise<void> {
      if (!('outputs' in held)) await underLease(held)
      await reportFiles(context, held.id, held.epoch, files)
    },
    /** Takes a worker's reports on tasks that this key has claimed. */
    async report(worker: string, reports: Pick<SyncRequest, 'started' | 'beats' | 'settled'>) {
      const { started = [], beats = [], settled = [] } = reports
      const held = new Map([...started, ...beats, ...settled].map(item => [leaseOf(item), item]))
      for (const item of held.values()) await underLease(item)
      return run.sync(caller, { ...reports, worker })
    },
    /** Cancels a task in the name of the lease that this key has. */
    async cancelHeld(held: HeldTask, call: Parameters<EngineMethods['cancel']>[1]) {
      await underLease(held)
      return run.cancel(caller, held.id, { ...call, epoch: held.epoch })
    },
    /** Moves a task to the dead-letter queue in the name of the lease that this key has. */
    async deadLetterHeld(held: HeldTask, call: Parameters<EngineMethods['deadLetter']>[1]) {
      await underLease(held)
      return run.deadLetter(caller, held.id, { ...call, epoch: held.epoch })
    },
  }
}

type Metadata = Record<string, unknown>

type DialectMethods = Omit<EngineMethods, (typeof operationsByEpoch)[number]>

/** The methods of the registry that a dialect may call. Each needs the permission and the queues that its route needs. */
function checkedMethods(caller: Caller, needs: (permission: Permission) => void): DialectMethods {
  const isOffered = ([name]: readonly [OperationName, unknown]) => !operationsByEpoch.some(other => other === name)
  const checked = namedOperations.filter(isOffered).map(([name, operation]) => [
    name,
    async (...args: unknown[]) => {
      needs(operation.permission)
      await demandScope(caller, operation, args)
      return (run[name] as (caller: Caller, ...args: unknown[]) => unknown)(caller, ...args)
    },
  ])
  return Object.fromEntries(checked) as unknown as DialectMethods
}

function readingMethods({ internals }: Engine, needs: (permission: Permission) => void) {
  const methods = readingInternals.map(name => [
    name,
    async (...args: unknown[]) => {
      needs('read')
      return (internals[name] as (...args: unknown[]) => unknown)(...args)
    },
  ])
  return Object.fromEntries(methods) as Pick<Engine['internals'], (typeof readingInternals)[number]>
}

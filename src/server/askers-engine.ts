/** Builds the engine that a dialect gets: it checks every call against the key of the request. */
import { type AskersEngine, operationsByEpoch, readingInternals } from '../dialects/askers-engine.ts'
import type { Engine } from '../engine/engine.ts'
import { demandQueues } from '../engine/key-queues.ts'
import { type Caller, type EngineMethods, run } from '../engine/operations.ts'
import { demandScope } from '../engine/queue-scope.ts'
import { Problem } from '../kernel/problem.ts'
import { may, type Permission } from '../kernel/role.ts'
import { namedOperations, type OperationName, operations } from '../protocol/operations.ts'
import { type HeldTask, leaseOf, type OneOutcome, type SaidOf } from '../protocol/tasks/sync.ts'
import { type Asker, requirePermission } from './authenticate.ts'
import { callerFor, type Served } from './bind.ts'

type Claimed = Awaited<ReturnType<Engine['internals']['claimedTask']>>

export function engineFor(served: Pick<Served, 'engine' | 'reports'>, asker: Asker): AskersEngine {
  const { engine } = served
  const { internals } = engine
  const leases = leasesOf(engine, asker)
  const caller = callerFor(served, asker)
  const needs = (permission: Permission | readonly Permission[]) => requirePermission(asker, permission)
  const demandQueue = (queues: readonly unknown[]) => demandQueues(asker.queues, queues)
  const checked = checkedMethods(caller, needs)
  /** A task that the key has claimed is visible without the permission to read others. */
  const ofTask =
    <Name extends 'task' | 'attempts'>(name: Name) =>
    async (id: string) => {
      if (!leases.knows(id)) needs(operations[name].permission)
      return run[name](caller, id) as never
    }
  const settling =
    <Outcome extends OneOutcome>(outcome: Outcome) =>
    async (id: string, epoch: number | null, report: SaidOf<Outcome> = {} as SaidOf<Outcome>) => {
      needs('work')
      const task = await leases.demand(id, epoch)
      return internals.settle(outcome, id, epoch, report, {
        queues: asker.queues,
        ...(task !== undefined && { task }),
      })
    }
  const underLease = async ({ id, epoch }: HeldTask) => {
    needs('work')
    await leases.demand(id, epoch)
  }
  const holder = asker.holder === '' ? {} : { holder: asker.holder }
  return {
    ...checked,
    ...readingMethods(engine, needs),
    task: ofTask('task'),
    attempts: ofTask('attempts'),
    clock: () => internals.clock(),
    ready: () => engine.ready(),
    hasPipeline: name => Object.hasOwn(engine.context.pipelines, name),
    figures() {
      needs('read')
      return engine.context.metrics
    },
    follow(query, options) {
      needs(operations.events.permission)
      return engine.follow(query, options)
    },
    async cloneJob(id, call) {
      needs(operations.submit.permission)
      if (asker.queues !== null) demandQueue((await run.job(caller, id)).stages.map(({ queue }) => queue))
      return run.retryJob(caller, id, { ...call, clone: true })
    },
    async setJobPriority(id, priority, call) {
      needs(operations.patchJob.permission)
      return internals.setJobPriority(id, priority, call)
    },
    async replaceJobMetadata(id, metadata, call) {
      needs(['operate', 'produce'])
      if (asker.queues !== null) demandQueue((await run.job(caller, id)).stages.map(({ queue }) => queue))
      return run.patchJob(caller, id, { metadata, replace: true }, call)
    },
    async replaceStageMetadata(id, metadata, call) {
      needs(['operate', 'produce'])
      if (asker.queues !== null) demandQueue([(await run.stage(caller, id)).queue])
      return run.patchStage(caller, id, { metadata, replace: true }, call)
    },
    async replaceTaskMetadata(id, metadata, call) {
      needs(['operate', 'work'])
      if (!may(asker.roles, 'operate')) await leases.find(id)
      return run.patchTask(caller, id, { metadata, replace: true }, call)
    },
    async claims(request, call, signal) {
      const claimed = await checked.claims(request, { ...call, ...holder }, signal)
      for (const { id } of claimed) leases.learn(id)
      return claimed
    },
    async take(request, call, signal) {
      needs(operations.claims.permission)
      await demandScope(caller, operations.claims, [request])
      return internals.take(request, { ...call, ...holder }, signal)
    },
    async heldTask(id) {
      needs('work')
      return (await leases.find(id)).task
    },
    succeed: settling('succeeded'),
    fail: settling('failed'),
    release: settling('released'),
    async reportArtifacts(id, epoch, report) {
      await underLease({ id, epoch })
      return run.reportArtifacts(caller, id, epoch, report)
    },
    async report(worker, reports) {
      const { started = [], beats = [], settled = [] } = reports
      const held = new Map([...started, ...beats, ...settled].map(item => [leaseOf(item), item]))
      for (const item of held.values()) await underLease(item)
      return run.sync(caller, { ...reports, worker })
    },
    async cancelHeld(held, call) {
      await underLease(held)
      return run.cancel(caller, held.id, { ...call, epoch: held.epoch })
    },
    async deadLetterHeld(held, call) {
      await underLease(held)
      return run.deadLetter(caller, held.id, { ...call, epoch: held.epoch })
    },
  }
}

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

/**
 * The leases of a request. Workers of most dialects send no epoch, so the dialect finds it, and the proof that a worker
 * holds a lease is its key: only the key that claimed may report. A client without a key controls the machine, and may
 * report on anything.
 */
function leasesOf(engine: Engine, { holder, queues }: Asker) {
  const found = new Map<string, Claimed>()
  const claimed = new Set<string>()
  const isKeyed = holder !== ''

  async function find(id: string): Promise<Claimed> {
    const known = found.get(id.toLowerCase())
    if (known !== undefined) return known
    const lease = isKeyed ? await engine.internals.claimedTask(id) : { task: await engine.task(id), keys: new Map() }
    demandQueues(queues, [lease.task.queue])
    if (isKeyed && ![...lease.keys.values()].includes(holder)) {
      throw new Problem('KEY_REFUSED', { id, why: 'another key claimed this task, or none did' })
    }
    found.set(lease.task.id, lease)
    return lease
  }

  return {
    find,
    learn: (id: string) => void claimed.add(id),
    /** Whether the key is known to have claimed the task. */
    knows: (id: string) => claimed.has(id) || found.has(id.toLowerCase()),
    /** Throws unless the key holds the lease of this epoch, or the current one. Returns the task if it was read. */
    async demand(id: string, epoch: number | null) {
      if (!isKeyed) return found.get(id.toLowerCase())?.task
      const { task, keys } = await find(id)
      if (keys.get(epoch ?? task.epoch) !== holder) throw new Problem('LEASE_LOST', { id, epoch: epoch ?? task.epoch })
      return task
    },
  }
}

/** Builds what a dialect is given in place of the engine: each of its calls is checked for the one who asks. */
import type { AskersEngine, ReadingOperation, RoutedOperation } from '../dialects/askers-engine.ts'
import type { Pawl } from '../engine/engine.ts'
import { demandQueues } from '../engine/key-queues.ts'
import { Problem } from '../kernel/problem.ts'
import { may, type Permission } from '../kernel/role.ts'
import { routes } from '../protocol/routes.ts'
import { type HeldTask, leaseOf, type OneOutcome, type SaidOf } from '../protocol/tasks/sync.ts'
import { type Asker, demand } from './admit.ts'
import type { Served } from './bind.ts'
import { demandQueuesOf } from './queues-of.ts'

type Claimed = Awaited<ReturnType<Pawl['claimedTask']>>

export function engineFor({ engine, sync }: Pick<Served, 'engine' | 'sync'>, asker: Asker): AskersEngine {
  const leases = leasesOf(engine, asker)
  const needing = (permission: Permission | readonly Permission[]) => demand(asker, permission)
  const inQueues = (queues: readonly unknown[]) => demandQueues(asker.queues, queues)
  const routed =
    <Name extends RoutedOperation>(name: Name) =>
    async (...args: Parameters<Pawl[Name]>): Promise<Awaited<ReturnType<Pawl[Name]>>> => {
      needing(routes[name].needs)
      await demandQueuesOf(asker, engine, name, args)
      return (engine[name] as (...args: unknown[]) => never)(...args)
    }
  const reading =
    <Name extends ReadingOperation>(name: Name) =>
    async (...args: Parameters<Pawl[Name]>): Promise<Awaited<ReturnType<Pawl[Name]>>> => {
      needing('read')
      return (engine[name] as (...args: unknown[]) => never)(...args)
    }
  /** A task that the asker has claimed, or may report on, it may see without the permission to read others. */
  const seeing =
    <Name extends 'task' | 'attempts'>(name: Name) =>
    async (id: string) => {
      if (!leases.knows(id)) needing(routes[name].needs)
      return engine[name](id) as never
    }
  const settling =
    <Outcome extends OneOutcome>(outcome: Outcome) =>
    async (id: string, epoch: number | null, said: SaidOf<Outcome> = {} as SaidOf<Outcome>) => {
      needing('work')
      const task = await leases.demand(id, epoch)
      return engine.settle(outcome, id, epoch, said, { queues: asker.queues, ...(task !== undefined && { task }) })
    }
  const underLease = async ({ id, epoch }: HeldTask) => {
    needing('work')
    await leases.demand(id, epoch)
  }
  const holder = asker.holder === '' ? {} : { holder: asker.holder }
  return {
    addStages: routed('addStages'),
    addTasks: routed('addTasks'),
    approve: routed('approve'),
    attempts: seeing('attempts'),
    cancel: routed('cancel'),
    cancelJob: routed('cancelJob'),
    deadLetter: routed('deadLetter'),
    deadLetters: routed('deadLetters'),
    deleteJob: routed('deleteJob'),
    deleteTask: routed('deleteTask'),
    enqueueMany: routed('enqueueMany'),
    events: routed('events'),
    job: routed('job'),
    jobEvents: routed('jobEvents'),
    jobTasks: routed('jobTasks'),
    jobs: routed('jobs'),
    pauseJob: routed('pauseJob'),
    redrive: routed('redrive'),
    resume: routed('resume'),
    resumeJob: routed('resumeJob'),
    stage: routed('stage'),
    stageTasks: routed('stageTasks'),
    stages: routed('stages'),
    startJob: routed('startJob'),
    stats: routed('stats'),
    task: seeing('task'),
    taskArtifacts: routed('taskArtifacts'),
    taskEvents: routed('taskEvents'),
    tasks: routed('tasks'),
    workers: routed('workers'),
    countsByState: reading('countsByState'),
    countTasks: reading('countTasks'),
    deepestQueues: reading('deepestQueues'),
    inputsFound: reading('inputsFound'),
    reasonsOf: reading('reasonsOf'),
    taskCounts: reading('taskCounts'),
    totals: reading('totals'),
    clock: () => engine.clock(),
    ready: () => engine.ready(),
    hasPipeline: name => Object.hasOwn(engine.context.pipelines, name),
    figures() {
      needing('read')
      return engine.context.metrics
    },
    follow(ask, how) {
      needing(routes.events.needs)
      return engine.follow(ask, how)
    },
    async submit(spec, call) {
      needing(routes.submit.needs)
      return engine.submit(spec, call, asker.queues)
    },
    async cloneJob(id, call) {
      needing(routes.submit.needs)
      if (asker.queues !== null) inQueues((await engine.job(id)).stages.map(({ queue }) => queue))
      return engine.retryJob(id, { ...call, clone: true })
    },
    async setJobPriority(id, priority, call) {
      needing(routes.patchJob.needs)
      return engine.setJobPriority(id, priority, call)
    },
    async replaceJobMetadata(id, metadata, call) {
      needing(['operate', 'produce'])
      if (asker.queues !== null) inQueues((await engine.job(id)).stages.map(({ queue }) => queue))
      return engine.patchJob(id, { metadata, replace: true }, call)
    },
    async replaceStageMetadata(id, metadata, call) {
      needing(['operate', 'produce'])
      if (asker.queues !== null) inQueues([(await engine.stage(id)).queue])
      return engine.patchStage(id, { metadata, replace: true }, call)
    },
    async replaceTaskMetadata(id, metadata, call) {
      needing(['operate', 'work'])
      if (!may(asker.roles, 'operate')) await leases.find(id)
      return engine.patchTask(id, { metadata, replace: true }, call)
    },
    async claims(request, call, signal) {
      needing(routes.claims.needs)
      inQueues(request.queues ?? [])
      const claimed = await engine.claims(request, { ...call, ...holder }, signal)
      for (const { id } of claimed) leases.learn(id)
      return claimed
    },
    async take(request, call, signal) {
      needing(routes.claims.needs)
      inQueues(request.queues ?? [])
      return engine.take(request, { ...call, ...holder }, signal)
    },
    async heldTask(id) {
      needing('work')
      return (await leases.find(id)).task
    },
    succeed: settling('succeeded'),
    fail: settling('failed'),
    release: settling('released'),
    async reportArtifacts(id, epoch, said) {
      await underLease({ id, epoch })
      return engine.reportArtifacts(id, epoch, said)
    },
    async report(worker, said) {
      const { started = [], beats = [], settled = [] } = said
      const held = new Map([...started, ...beats, ...settled].map(item => [leaseOf(item), item]))
      for (const item of held.values()) await underLease(item)
      return sync({ ...said, worker }, undefined, asker.queues)
    },
    async cancelHeld(held, call) {
      await underLease(held)
      return engine.cancel(held.id, { ...call, epoch: held.epoch })
    },
    async deadLetterHeld(held, call) {
      await underLease(held)
      return engine.deadLetter(held.id, { ...call, epoch: held.epoch })
    },
  }
}

/**
 * The leases that a request is about. Dialects whose workers name no epoch find it themselves, so what proves who may
 * report is the key: only the one that claimed may. An asker without a key has the machine, and may report on anything.
 */
function leasesOf(engine: Pawl, { holder, queues }: Asker) {
  const found = new Map<string, Claimed>()
  const claimed = new Set<string>()
  const isKeyed = holder !== ''

  async function find(id: string): Promise<Claimed> {
    const known = found.get(id.toLowerCase())
    if (known !== undefined) return known
    const lease = isKeyed ? await engine.claimedTask(id) : { task: await engine.task(id), keys: new Map() }
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
    /** Whether the asker is known to have claimed it. */
    knows: (id: string) => claimed.has(id) || found.has(id.toLowerCase()),
    /** Whether the asker may report under this epoch, or under the current one; the task, if it was read. */
    async demand(id: string, epoch: number | null) {
      if (!isKeyed) return found.get(id.toLowerCase())?.task
      const { task, keys } = await find(id)
      if (keys.get(epoch ?? task.epoch) !== holder) throw new Problem('LEASE_LOST', { id, epoch: epoch ?? task.epoch })
      return task
    },
  }
}

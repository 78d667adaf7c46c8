/** Every operation, on a few rows of its own in a store that holds many others. */
import type { Engine } from '../../src/engine/engine.ts'
import type { OperationName } from '../../src/protocol/operations.ts'
import type { ClaimedTask } from '../../src/protocol/tasks/sync.ts'

export type Ask = (engine: Engine, some: Some) => Promise<unknown>

interface Some {
  /** A running job of two stages with four tasks each, of its own for each operation. */
  job(): Promise<{ id: string; stages: readonly { id: string }[] }>
  /** A job whose first stage waits at a gate. */
  gated(): Promise<{ id: string; stages: readonly { id: string }[] }>
  /** A task that is held. */
  held(): Promise<ClaimedTask>
  failed(): Promise<string>
  dead(): Promise<string>
}

/** The number of items that are returned or changed, and the request. */
export const operations: Record<OperationName, readonly [items: number, ask: Ask]> = {
  submit: [10, (_engine, some) => some.job()],
  jobs: [50, engine => engine.jobs({ limit: 50 })],
  job: [10, async (engine, some) => engine.job((await some.job()).id)],
  patchJob: [10, async (engine, some) => engine.patchJob((await some.job()).id, { metadata: { a: 1 } })],
  deleteJob: [
    20,
    async (engine, some) => {
      const { id } = await some.job()
      await engine.cancelJob(id)
      await engine.deleteJob(id)
    },
  ],
  startJob: [
    20,
    async engine => {
      const { id } = await engine.submit({
        name: 'j',
        start: false,
        stages: [{ name: 'a', task: 'a', payloads: [1, 2] }],
      })
      await engine.startJob(id)
    },
  ],
  pauseJob: [20, async (engine, some) => engine.pauseJob((await some.job()).id)],
  resumeJob: [
    20,
    async (engine, some) => {
      const { id } = await some.job()
      await engine.pauseJob(id)
      await engine.resumeJob(id)
    },
  ],
  cancelJob: [20, async (engine, some) => engine.cancelJob((await some.job()).id)],
  retryJob: [
    30,
    async (engine, some) => {
      const { id } = await some.job()
      await engine.cancelJob(id)
      await engine.retryJob(id)
    },
  ],
  sealJob: [20, async (engine, some) => engine.sealJob((await some.job()).id)],
  addStages: [
    10,
    async engine => {
      const { id } = await engine.submit({ name: 'j', open: true, stages: [] })
      await engine.addStages(id, [{ name: 'a', task: 'a' }])
    },
  ],
  jobEvents: [20, async (engine, some) => engine.jobEvents((await some.job()).id)],
  jobStages: [20, async (engine, some) => engine.jobStages((await some.job()).id)],
  jobArtifacts: [20, async (engine, some) => engine.jobArtifacts((await some.job()).id)],
  jobTasks: [20, async (engine, some) => engine.jobTasks((await some.job()).id)],
  timeline: [20, async (engine, some) => engine.timeline((await some.job()).id)],
  troubles: [50, engine => engine.troubles()],
  stages: [50, engine => engine.stages({ state: 'waiting', limit: 50 })],
  stage: [10, async (engine, some) => engine.stage((await some.job()).stages[0]!.id)],
  stageCounts: [10, async (engine, some) => engine.stageCounts((await some.job()).stages[0]!.id)],
  patchStage: [10, async (engine, some) => engine.patchStage((await some.job()).stages[0]!.id, { metadata: { a: 1 } })],
  approve: [10, async (engine, some) => engine.approve((await some.gated()).stages[0]!.id)],
  reject: [10, async (engine, some) => engine.reject((await some.gated()).stages[0]!.id)],
  hold: [10, async (engine, some) => engine.hold((await some.job()).stages[1]!.id)],
  cancelStage: [20, async (engine, some) => engine.cancelStage((await some.job()).stages[0]!.id)],
  retryStage: [
    30,
    async (engine, some) => {
      const [stage] = (await some.job()).stages
      await engine.cancelStage(stage!.id)
      await engine.retryStage(stage!.id)
    },
  ],
  sealStage: [
    10,
    async engine => {
      const { stages } = await engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a', open: true }] })
      await engine.sealStage(stages[0]!.id)
    },
  ],
  addTasks: [
    20,
    async engine => {
      const { stages } = await engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a', open: true }] })
      await engine.addTasks(stages[0]!.id, [{ payload: 1 }, { payload: 2 }])
    },
  ],
  stageEvents: [10, async (engine, some) => engine.stageEvents((await some.job()).stages[0]!.id)],
  stageArtifacts: [10, async (engine, some) => engine.stageArtifacts((await some.job()).stages[0]!.id)],
  stageJob: [10, async (engine, some) => engine.stageJob((await some.job()).stages[0]!.id)],
  stageFiles: [10, async (engine, some) => engine.stageFiles((await some.job()).stages[0]!.id)],
  stageTasks: [10, async (engine, some) => engine.stageTasks((await some.job()).stages[0]!.id)],
  enqueueMany: [2, engine => engine.enqueueMany([{ type: 'x' }, { type: 'x', dedupeKey: 'k' }])],
  tasks: [50, engine => engine.tasks({ limit: 50 })],
  task: [2, async (engine, some) => engine.task((await some.held()).id)],
  taskEvents: [5, async (engine, some) => engine.taskEvents((await some.held()).id)],
  attempts: [5, async (engine, some) => engine.attempts((await some.held()).id)],
  logs: [5, async (engine, some) => engine.logs((await some.held()).id)],
  taskArtifacts: [5, async (engine, some) => engine.taskArtifacts((await some.held()).id)],
  lineage: [5, engine => engine.lineage({ uri: 's3://none/of/this' })],
  patchTask: [5, async (engine, some) => engine.patchTask((await some.held()).id, { metadata: { a: 1 } })],
  cancel: [5, async (engine, some) => engine.cancel((await some.held()).id)],
  resume: [
    10,
    async engine => {
      const { id } = await engine.enqueue('y', 1)
      await engine.cancel(id)
      await engine.resume(id)
    },
  ],
  retry: [10, async (engine, some) => engine.retry(await some.failed())],
  deadLetter: [
    10,
    async (engine, some) => engine.deadLetter((await some.held()).id, { reasonCode: 'policy_violation' }),
  ],
  deleteTask: [10, async (engine, some) => engine.deleteTask(await some.failed())],
  deadLetters: [50, engine => engine.deadLetters({ limit: 50 })],
  redriveProgress: [
    10,
    async (engine, some) => {
      const { id } = await engine.redrive({ ids: [await some.dead()] })
      await engine.redriveProgress(id!)
    },
  ],
  redrive: [10, async (engine, some) => engine.redrive({ ids: [await some.dead()] })],
  sync: [10, engine => engine.sync({ worker: 'w', queues: ['alone'], claim: 10 })],
  claims: [10, engine => engine.claims({ worker: 'w', queues: ['alone'], claim: 10 })],
  start: [
    10,
    async engine => {
      const [task] = await engine.claims({ worker: 'w', queues: ['alone'] })
      await engine.start(task!.id, task!.epoch)
    },
  ],
  heartbeat: [5, async (engine, some) => onHeld(some, ({ id, epoch }) => engine.heartbeat(id, epoch))],
  succeed: [5, async (engine, some) => onHeld(some, ({ id, epoch }) => engine.succeed(id, epoch))],
  fail: [
    5,
    async (engine, some) => onHeld(some, ({ id, epoch }) => engine.fail(id, epoch, { error: { message: 'no' } })),
  ],
  skip: [5, async (engine, some) => onHeld(some, ({ id, epoch }) => engine.skip(id, epoch))],
  release: [5, async (engine, some) => onHeld(some, ({ id, epoch }) => engine.release(id, epoch))],
  cancelled: [
    10,
    async (engine, some) =>
      onHeld(some, async ({ id, epoch }) => {
        await engine.cancel(id)
        await engine.cancelled(id, epoch)
      }),
  ],
  reportArtifacts: [
    5,
    async (engine, some) => onHeld(some, ({ id, epoch }) => engine.reportArtifacts(id, epoch, { artifacts: [] })),
  ],
  workers: [60, engine => engine.workers({ limit: 60 })],
  loseWorker: [
    10,
    async engine => {
      await engine.claims({ worker: 'lost', queues: ['alone'] })
      await engine.loseWorker('lost')
    },
  ],
  putTaskType: [5, engine => engine.putTaskType('x', { retry: { attempts: 2 } })],
  taskTypes: [5, engine => engine.taskTypes()],
  taskType: [5, engine => engine.taskType('x')],
  stats: [50, engine => engine.stats()],
  queues: [60, engine => engine.queues({ limit: 60 })],
  doctor: [0, engine => engine.doctor()],
  events: [50, engine => engine.events({ latest: 50 })],
  createKey: [5, engine => engine.createKey({ name: `key ${Math.floor(performance.now())}`, role: 'viewer' })],
  keys: [5, engine => engine.keys()],
  revokeKey: [
    10,
    async engine => {
      const { id } = await engine.createKey({ name: `revoked ${Math.floor(performance.now())}`, role: 'viewer' })
      await engine.revokeKey(id)
    },
  ],
}

/** Lists with the filters that people use. */
export const filtered: Record<string, readonly [items: number, ask: Ask]> = {
  'jobs by name': [50, engine => engine.jobs({ name: 'gated', limit: 50 })],
  'jobs by correlation': [50, engine => engine.jobs({ correlationId: 'none', limit: 50 })],
  'tasks by correlation': [50, engine => engine.tasks({ correlationId: 'none', limit: 50 })],
  'tasks that failed': [50, engine => engine.tasks({ state: 'failed', limit: 50 })],
  'tasks that failed, counted': [50, engine => engine.tasks({ state: 'failed', limit: 50, total: true })],
  'tasks that are queued': [50, engine => engine.tasks({ state: 'queued', limit: 50 })],
  'tasks that are blocked': [50, engine => engine.tasks({ state: 'blocked', limit: 50 })],
  'tasks that are held': [50, engine => engine.tasks({ state: ['assigned', 'running'], limit: 50 })],
  'tasks of a queue that does not exist': [50, engine => engine.tasks({ queue: 'none', limit: 50 })],
  'dead letters of a type': [200, engine => engine.deadLetters({ type: 'ended', limit: 50 })],
  'tasks of a job in a state': [
    30,
    async (engine, some) => engine.jobTasks((await some.job()).id, { state: 'queued' }),
  ],
  'tasks of a stage in a state': [
    30,
    async (engine, some) => engine.stageTasks((await some.job()).stages[1]!.id, { state: 'blocked' }),
  ],
  'tasks of a job, counted': [30, async (engine, some) => engine.jobTasks((await some.job()).id, { total: true })],
  'events of a job': [50, async (engine, some) => engine.jobEvents((await some.job()).id)],
  'counts of stages': [
    30,
    async (engine, some) => engine.internals.taskCounts((await some.job()).stages.map(({ id }) => id)),
  ],
  'counts of a job': [30, async (engine, some) => engine.internals.countTasks((await some.job()).id)],
  'queues of tasks': [10, async (engine, some) => engine.internals.queuesOf([(await some.held()).id])],
}

async function onHeld(some: Some, work: (task: ClaimedTask) => Promise<unknown>): Promise<void> {
  await work(await some.held())
}

export function someOf(engine: Engine): Some {
  const stages = [
    { name: 'a', task: 'a', payloads: [1, 2, 3, 4] },
    { name: 'b', task: 'b', payloads: [1, 2, 3, 4] },
  ]
  const held = async () => {
    const [task] = await engine.claims({ worker: 'w', queues: ['alone'], start: true })
    return task!
  }
  const ended = async (permanent: boolean) => {
    await engine.enqueue('ended', 1, { retry: { attempts: 1 } })
    const [task] = await engine.claims({ worker: 'w', queues: ['ended'], start: true })
    await engine.fail(task!.id, task!.epoch, { error: { message: 'no', permanent } })
    return task!.id
  }
  return {
    job: () => engine.submit({ name: 'job', stages }),
    gated: () => engine.submit({ name: 'gated', stages: [{ name: 'gate', gate: { approvers: 1 } }] }),
    held,
    failed: () => ended(true),
    dead: () => ended(false),
  }
}

import { settingsOf } from '../kernel/settings.ts'
import type { Call, PawlApi, TasksOfQuery } from '../protocol/api.ts'
import { taskTypeFields } from '../protocol/fields.ts'
import type { JobQuery, NewStageTask } from '../protocol/jobs.ts'
import type { NewKey } from '../protocol/keys.ts'
import type { SyncPort } from '../protocol/sync.ts'
import { checkPayload, type TaskDefinition } from '../protocol/task-type.ts'
import type { NewTaskItem, TaskOptions, TaskTypeOptions } from '../protocol/tasks.ts'
import type { JobSpec, StageSpec } from '../spec/job-spec.ts'
import { callerDriver } from '../store/caller.ts'
import { dueByQueue } from '../store/claim.ts'
import { clockMs } from '../store/clock.ts'
import { openEmbedded } from '../store/embedded.ts'
import { brokenRules } from '../store/integrity.ts'
import { migrate } from '../store/migrate.ts'
import { notifications, notifyOnCommit } from '../store/notify.ts'
import { postgresPool } from '../store/postgres.ts'
import { putTaskType, queueDepths } from '../store/read.ts'
import { makeSql, type Sql } from '../store/sql.ts'
import { checkOptions, number, oneOf, text } from './check.ts'
import type { CallerTransaction, Context, Log } from './context.ts'
import * as control from './control.ts'
import { examine } from './doctor.ts'
import { type EnqueueCall, enqueueTasks } from './enqueue.ts'
import { claimHints } from './hints.ts'
import * as jobControl from './job-control.ts'
import { deleteJob, retryJob } from './job-ends.ts'
import * as jobRead from './job-read.ts'
import * as keys from './keys.ts'
import * as read from './read.ts'
import { mergedReports } from './reports.ts'
import * as stageControl from './stage-control.ts'
import { type SubmitCall, submitJob } from './submit.ts'
import { sync } from './sync.ts'
import { type Messenger, wakeBoard } from './wake.ts'

export interface PawlOptions {
  /** A PostgreSQL server. Default: the embedded store. */
  readonly database?: string
  /** Where the embedded store keeps its data. Default: in memory. */
  readonly folder?: string
  /** The schema that holds the tables. Default: pawl. */
  readonly schema?: string
  /** Connections to the server. Default 4. */
  readonly connections?: number
  /** Named statements; off for poolers that cannot keep them. Default true. */
  readonly prepare?: boolean
  /** The largest payload or output. Default 1 MiB. */
  readonly maxPayloadBytes?: number
  /** Bring the schema up to date when opening. Default true. */
  readonly migrate?: boolean
  /** A store that is open already, in place of `database` and `folder`. */
  readonly store?: Pick<Store, 'sql' | 'close'>
  readonly log?: Log
}

const optionFields = {
  database: text(2000),
  folder: text(2000),
  schema: (value: unknown) =>
    typeof value === 'string' && /^[a-z_][a-z0-9_]{0,50}$/.test(value) ? undefined : 'be a plain lower-case name',
  connections: number({ from: 1, to: 100, whole: true }),
  prepare: oneOf([true, false]),
  maxPayloadBytes: number({ from: 1000, to: 100_000_000, whole: true }),
  migrate: oneOf([true, false]),
  store: () => undefined,
  log: (value: unknown) => (typeof value === 'function' ? undefined : 'be a function'),
}

export type Pawl = Awaited<ReturnType<typeof pawl>>

/** Opens the engine: on a PostgreSQL server if one is named, else on the embedded store. */
export async function pawl(options: PawlOptions = {}) {
  checkOptions(options, optionFields, 'options')
  const store = await openStore(options)
  const ending = new AbortController()
  const context: Context = {
    sql: store.sql,
    aside: store.aside ?? store.sql,
    wake: wakeBoard(store.messenger, queues => dueByQueue(store.sql, queues), ending.signal),
    hints: claimHints(),
    log: options.log ?? (() => {}),
    maxPayloadBytes: options.maxPayloadBytes ?? 1_048_576,
    oneConnection: store.messenger === undefined,
    knownLanes: new Set(),
    knownSessions: new Set(),
    tellOnCommit: (sql, queues) => store.tellOnCommit(sql, queues),
    within: tx => (tx === undefined ? store.sql : asSql(tx, store.sql.schema)),
  }
  try {
    if (options.migrate !== false) await migrate(store.sql)
  } catch (error) {
    await store.close()
    throw error
  }
  return engineOf(context, async () => {
    ending.abort()
    await store.close()
  })
}

function engineOf(context: Context, close: () => Promise<void>) {
  const types = typeRegister(context)
  const engine = {
    /** Queues one task. Its payload is checked against its type's schema, if this process knows it. */
    async enqueue<In>(type: string | TaskDefinition<In>, payload: In, options: TaskOptions & EnqueueCall = {}) {
      const { tx, actor, idempotencyKey, holder, ...task } = options
      const name = typeof type === 'string' ? type : type.type
      if (typeof type !== 'string') await types.register(type, tx)
      const item: NewTaskItem = { ...task, type: name, payload }
      const call = {
        ...(tx !== undefined && { tx }),
        ...(actor !== undefined && { actor }),
        ...(idempotencyKey !== undefined && { idempotencyKey }),
        ...(holder !== undefined && { holder }),
      }
      const [queued] = await engine.enqueueMany([item], call)
      return queued!
    },
    /** Queues up to 10,000 tasks, all or none; the answers are in the order of the tasks. */
    async enqueueMany(items: readonly NewTaskItem[], call: EnqueueCall = {}) {
      await types.checkPayloads(items)
      return enqueueTasks(context, items, call)
    },
    /** Runs `work` in a transaction; pass its handle on to calls inside it. Workers hear of it once it commits. */
    async transaction<T>(work: (tx: Sql) => Promise<T>): Promise<T> {
      const result = await context.sql.begin(work)
      if (context.oneConnection) context.wake.tell(['*'])
      return result
    },
    sync: (request: Parameters<SyncPort['sync']>[0], signal?: AbortSignal) => sync(context, request, signal),
    /** A sync for a server: what many workers report at once, it writes together. */
    merging(): SyncPort['sync'] {
      const reports = mergedReports(context)
      return (request, signal) => sync(context, request, signal, reports)
    },
    cancel: (id: string, call?: Parameters<typeof control.cancelTask>[2]) => control.cancelTask(context, id, call),
    resume: (id: string, call?: control.ControlCall) => control.resumeTask(context, id, call),
    retry: (id: string, call?: control.ControlCall) => control.retryTask(context, id, call),
    deadLetter: (id: string, call: control.DeadLetterCall) => control.deadLetterTask(context, id, call),
    redrive: (request: Parameters<typeof control.redrive>[1], call?: control.ControlCall) =>
      control.redrive(context, request, call),
    /** Submits a job: a spec as an object, or as YAML or JSON text. All of it or nothing. */
    submit: (spec: JobSpec | string, call?: SubmitCall) => submitJob(context, spec, call),
    job: (id: string) => jobRead.readJob(context, id),
    jobs: (query?: JobQuery) => jobRead.findJobs(context, query),
    stage: (id: string) => jobRead.readStage(context, id),
    stages: (query: Parameters<typeof jobRead.findStages>[1]) => jobRead.findStages(context, query),
    startJob: (id: string, call?: control.ControlCall) => jobControl.start(context, id, call),
    pauseJob: (id: string, call?: control.ControlCall) => jobControl.pause(context, id, call),
    resumeJob: (id: string, call?: control.ControlCall) => jobControl.resume(context, id, call),
    cancelJob: (id: string, call?: Parameters<typeof jobControl.cancel>[2]) => jobControl.cancel(context, id, call),
    retryJob: (id: string, call?: control.ControlCall & { clone?: boolean }) => retryJob(context, id, call),
    deleteJob: (id: string, call?: control.ControlCall) => deleteJob(context, id, call),
    setJobPriority: (id: string, priority: number, call?: control.ControlCall) =>
      jobControl.setPriority(context, id, priority, call),
    sealJob: (id: string, call?: control.ControlCall) => jobControl.seal(context, id, call),
    addStages: (id: string, stages: readonly StageSpec[], call?: control.ControlCall) =>
      jobControl.addStages(context, id, stages, call),
    approve: (id: string, call?: stageControl.ApproveCall) => stageControl.approve(context, id, call),
    reject: (id: string, call?: stageControl.ApproveCall) => stageControl.reject(context, id, call),
    hold: (id: string, call?: control.ControlCall) => stageControl.hold(context, id, call),
    cancelStage: (id: string, call?: Parameters<typeof stageControl.cancelStage>[2]) =>
      stageControl.cancelStage(context, id, call),
    retryStage: (id: string, call?: control.ControlCall) => stageControl.retryStage(context, id, call),
    sealStage: (id: string, call?: control.ControlCall) => stageControl.sealStage(context, id, call),
    addTasks: (id: string, tasks: readonly NewStageTask[], call?: control.ControlCall) =>
      stageControl.addTasks(context, id, tasks, call),
    jobEvents: (id: string, ask?: { limit?: number; cursor?: string }) =>
      read.readEntityEvents(context, 'job', id, ask),
    stageEvents: (id: string, ask?: { limit?: number; cursor?: string }) =>
      read.readEntityEvents(context, 'stage', id, ask),
    jobStages: async (id: string) => ({ items: [...(await jobRead.readJob(context, id)).stages], next: null }),
    jobTasks: (id: string, query?: TasksOfQuery) => read.findTasksOf(context, 'job', id, query),
    stageTasks: (id: string, query?: TasksOfQuery) => read.findTasksOf(context, 'stage', id, query),
    task: (id: string) => read.readTask(context, id),
    tasks: (query?: Parameters<typeof read.findTasks>[1]) => read.findTasks(context, query),
    taskEvents: (id: string, ask?: { limit?: number; cursor?: string }) => read.readTaskEvents(context, id, ask),
    attempts: (id: string) => read.readAttempts(context, id),
    events: (ask?: Parameters<typeof read.readEvents>[1]) => read.readEvents(context, ask),
    queues: () => queueDepths(context.sql),
    workers: (query?: Parameters<typeof read.findWorkers>[1]) => read.findWorkers(context, query),
    /** Teaches the engine a type: its schema for this process, its settings for everyone. */
    register: (definition: TaskDefinition) => types.register(definition),
    putTaskType: (type: string, options: TaskTypeOptions) => types.put(type, options),
    taskType: (type: string) => read.readTaskType(context, type),
    createKey: (key: NewKey, call?: Call) => keys.createKey(context, key, call),
    keys: () => keys.findKeys(context),
    revokeKey: (id: string, call?: Call) => keys.revokeKey(context, id, call),
    /** Whose key this is; undefined: nobody's, or one that was revoked. */
    keyOf: (secret: string) => keys.keyOf(context, secret),
    anyKeys: () => keys.anyKeys(context),
    /** The queues that these tasks are in. */
    queuesOf: (ids: readonly unknown[]) => read.readQueuesOf(context, ids),
    /** Resolves if the store answers. */
    ready: async () => void (await clockMs(context.sql)),
    brokenRules: () => brokenRules(context.sql),
    doctor: () => examine(context),
    context,
    close,
    [Symbol.asyncDispose]: close,
  }
  return engine satisfies PawlApi
}

/** Types that this process has defined. Their settings are written once, and again when they change. */
function typeRegister(context: Context) {
  const known = new Map<string, TaskDefinition>()
  const written = new Map<string, TaskDefinition>()
  const put = async (type: string, options: TaskTypeOptions, tx?: CallerTransaction) => {
    checkOptions({ type }, { type: text(200) }, 'task type')
    checkOptions(options, taskTypeFields, `task type ${type}`)
    await putTaskType(context.within(tx), type, settingsOf(options) ?? {})
  }
  return {
    put,
    async register(definition: TaskDefinition, tx?: CallerTransaction) {
      if (written.get(definition.type) !== definition) {
        await put(definition.type, definition.options, tx)
        // What a transaction wrote may still be rolled back.
        if (tx === undefined) written.set(definition.type, definition)
      }
      known.set(definition.type, definition)
    },
    async checkPayloads(items: readonly NewTaskItem[]) {
      if (known.size === 0) return
      for (const [index, item] of items.entries()) {
        const definition = known.get(item.type)
        if (definition !== undefined) await checkPayload(definition, item.payload, `tasks[${index}].payload`)
      }
    },
  }
}

interface Store {
  readonly sql: Sql
  readonly aside?: Sql
  readonly messenger: Messenger | undefined
  tellOnCommit(sql: Sql, queues: readonly string[]): Promise<void>
  close(): Promise<void>
}

async function openStore(options: PawlOptions): Promise<Store> {
  const schema = options.schema ?? 'pawl'
  if (options.store !== undefined) return { ...options.store, messenger: undefined, tellOnCommit: async () => {} }
  if (options.database === undefined) {
    const { driver, close } = await openEmbedded(options.folder)
    return { sql: makeSql(driver, schema), messenger: undefined, tellOnCommit: async () => {}, close }
  }
  const { connections = 4, prepare = true } = options
  const { pool, driver } = postgresPool(options.database, { connections, prepare })
  const aside = postgresPool(options.database, { connections: 1, prepare: false })
  return {
    sql: makeSql(driver, schema),
    aside: makeSql(aside.driver, schema),
    messenger: notifications(options.database, pool, schema),
    tellOnCommit: (sql, queues) => notifyOnCommit(sql, queues),
    close: async () => void (await Promise.all([pool.end(), aside.pool.end()])),
  }
}

function asSql(tx: CallerTransaction, schema: string): Sql {
  return typeof tx === 'function' ? tx : makeSql(callerDriver(tx), schema)
}

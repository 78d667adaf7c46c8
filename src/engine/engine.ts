import { pathToFileURL } from 'node:url'
import { openFiles } from '../files/files.ts'
import { otherLabel } from '../kernel/metrics.ts'
import { Problem } from '../kernel/problem.ts'
import type { CallerTransaction } from '../kernel/transactions.ts'
import { tasksOf } from '../protocol/jobs/define-job.ts'
import type { TaskDefinition } from '../protocol/tasks/new-task.ts'
import { type Enqueue, findTask, type TaskItem, type TaskRegistry, typeOf } from '../protocol/tasks/registry.ts'
import { type JobHandle, jobHandle, taskHandle } from '../protocol/tasks/results.ts'
import type { SettledTask } from '../protocol/tasks/sync.ts'
import type { FeedPage, FeedQuery, NewTaskItem, QueuedTask, TaskOptions } from '../protocol/tasks/tasks.ts'
import { name as nameField } from '../schema/fields.ts'
import { specInvalid } from '../spec/faults.ts'
import type { JobSpec } from '../spec/job-spec.ts'
import { type Pipelines, parseJobSpec } from '../spec/parse-job-spec.ts'
import { readYaml } from '../spec/read-yaml.ts'
import { type CountedNames, countByState } from '../store/admin/count-by-state.ts'
import { brokenRules } from '../store/admin/integrity.ts'
import { countDeadLetters, readTotals, type TypesToName } from '../store/admin/stats.ts'
import { clockMs } from '../store/driver/clock.ts'
import { defaultBounds } from '../store/driver/postgres.ts'
import type { Sql } from '../store/driver/sql.ts'
import { feedLag } from '../store/feed/feed.ts'
import { deepestQueues, type QueuesToName } from '../store/flow/queue-depths.ts'
import { insertJobs } from '../store/jobs/insert-jobs.ts'
import { migrate } from '../store/schema/migrate.ts'
import { dueByQueue } from '../store/tasks/due.ts'
import { findEnded, reasonsOf } from '../store/tasks/read-tasks.ts'
import * as keys from './admin/keys.ts'
import { makeKeyWatch } from './admin/keys.ts'
import { Activities, makeProcessMetrics } from './admin/process-metrics.ts'
import { checkOptions } from './check.ts'
import type { Context } from './context.ts'
import { makeEndWatch } from './ends.ts'
import { type Following, follow, watchFeed } from './feed/follow.ts'
import { readEvents } from './feed/read-events.ts'
import { ConditionTurns } from './jobs/evaluate-conditions.ts'
import { setPriority } from './jobs/job-control.ts'
import { countTasksOf, countTasksOfStages, waitForInputs } from './jobs/read-jobs.ts'
import { mergeSubmits, queuesOfOpenStages } from './jobs/small-jobs.ts'
import { openStore, optionFields, type PawlOptions, type Store } from './open-store.ts'
import { type Caller, type EngineMethods, methodsFor, run } from './operations.ts'
import { retryConflicts } from './retry.ts'
import { makeClaimHints } from './tasks/claim-hints.ts'
import * as oneTask from './tasks/one-task.ts'
import { readClaimedTask, readQueuesOf } from './tasks/read-tasks.ts'
import { noTypes, registerType } from './tasks/task-types.ts'
import { inOwnTransaction, joinTransaction, type UnitCall } from './unit-of-work.ts'
import { makeWake, makeWakeSignal } from './wake.ts'

export type { PawlOptions } from './open-store.ts'

/** The engine in this process. A change that can join a transaction of yours takes its handle as the option tx. */
export interface Pawl<Tasks extends TaskRegistry = TaskRegistry> extends Omit<EngineMethods, 'enqueueMany'> {
  /**
   * Enqueues one task, and returns a handle that waits for its result. The payload is checked against the schema of its
   * type.
   */
  enqueue: Enqueue<UnitCall, Tasks>
  /** Enqueues up to 10,000 tasks, all or none. Payloads are checked against the schemas of their types. */
  enqueueMany(tasks: readonly TaskItem<Tasks>[], call?: UnitCall): Promise<QueuedTask[]>
  /** Submits a job, and returns a handle that waits for its end. */
  submit(...args: Parameters<EngineMethods['submit']>): Promise<JobHandle>
  /** Registers a type: its schema for this process, its settings for all processes. */
  register(definition: TaskDefinition): Promise<void>
  /** Runs `work` in a transaction; pass its handle to calls inside it. Workers are woken once it commits. */
  transaction<T>(work: (tx: Sql) => Promise<T>): Promise<T>
  /** Follows the feed of events, page by page, until the signal aborts. */
  follow(query: FeedQuery, options: Following): AsyncGenerator<FeedPage, void, void>
  /** Resolves if the store accepts writes; else throws the problem, within a second. */
  ready(): Promise<void>
  /** Integrity rules that the rows in the store violate. */
  brokenRules(): ReturnType<typeof brokenRules>
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** A `Pawl` with any tasks. */
export type AnyPawl = Omit<Pawl, 'enqueue' | 'enqueueMany'>

/** The same object as the server, the worker, the dialects and the tests see it. It is not part of the public API. */
export interface Engine extends Pawl {
  readonly context: Context
  readonly internals: Internals
  /** For workers in this process. */
  completeIn(tx: CallerTransaction, settled: SettledTask, worker: string): Promise<void>
}

/**
 * Opens the engine: on a PostgreSQL server if one is named, else on the embedded store.
 *
 * @example
 * const app = await pawl({ database: process.env.DATABASE_URL, tasks: { sendInvoice, resize } })
 * await app.enqueue('resize', { file: 'a.png', width: 200 })
 */
export const pawl: <const Tasks extends TaskRegistry = TaskRegistry>(
  options?: PawlOptions & { readonly tasks?: Tasks },
) => Promise<Pawl<Tasks>> = openEngine as never

/** Every `Pawl` was opened here. */
export const engineBehind = (pawl: AnyPawl): Engine => pawl as Engine

export async function openEngine(options: PawlOptions = {}): Promise<Engine> {
  checkOptions(options, optionFields, 'options')
  const store = await openStore(options)
  const ending = new AbortController()
  try {
    const context = makeContext(options, store, ending.signal)
    if (options.migrate !== false) await migrate(store.sql)
    return engineOn(context, options.tasks, async () => {
      ending.abort()
      await context.files.close()
      await store.close()
    })
  } catch (error) {
    ending.abort()
    await store.close()
    throw error
  }
}

/** The caller's own code runs between the statements. */
const callersBounds = { idleSeconds: 60 }

function engineOn(context: Context, tasks: TaskRegistry | undefined, close: () => Promise<void>): Engine {
  const caller: Caller = { context, queues: null, holder: '' }
  const methods = methodsFor(caller)
  /** Registers the types of these tasks before it makes a call, in the same transaction. */
  const withTypes = <Answer>(
    used: readonly (string | TaskDefinition)[],
    call: UnitCall,
    work: (call: UnitCall) => Promise<Answer>,
  ) =>
    joinTransaction(context, call.tx, async tx => {
      const defined = [...new Set(used)].filter(task => typeof task !== 'string')
      // In the same order everywhere, so that transactions that register the same types cannot deadlock.
      for (const task of defined.toSorted((a, b) => (a.type < b.type ? -1 : 1))) await registerType(context, task, tx)
      return work({ ...call, tx } as UnitCall)
    })
  return {
    ...methods,
    async enqueue(
      named: string | TaskDefinition,
      payload: unknown,
      { tx, actor, idempotencyKey, holder, ...options }: TaskOptions & UnitCall = {},
    ) {
      const task = findTask(tasks, named)
      const item: NewTaskItem = { ...options, type: typeOf(task), payload }
      const call = { tx, actor, idempotencyKey, holder } as UnitCall
      const [queued] = await withTypes([task], call, joined => run.enqueueMany(caller, [item], joined))
      return taskHandle(methods, queued!)
    },
    async enqueueMany(items: readonly NewTaskItem[], call: UnitCall = {}) {
      if (tasks === undefined || !Array.isArray(items)) return methods.enqueueMany(items, call)
      const found = items.map(({ type }) => findTask(tasks, type))
      const typed = items.map((item, index) => ({ ...item, type: typeOf(found[index]!) }))
      return withTypes(found, call, joined => run.enqueueMany(caller, typed, joined))
    },
    async submit(spec, call = {}) {
      const job = await withTypes(tasksOf(spec), call, joined => run.submit(caller, spec, joined))
      return jobHandle(methods, job)
    },
    register: definition => registerType(context, definition),
    transaction: work => inOwnTransaction(context, work, callersBounds),
    follow: (query, options) => follow(context.feed, query, options),
    ready: () => context.ready(),
    brokenRules: () => brokenRules(context.sql),
    context,
    internals: internalsOf(context),
    completeIn: (tx, settled, worker) =>
      joinTransaction(context, tx, joined => oneTask.completeIn(context, joined!, settled, worker)),
    close,
    [Symbol.asyncDispose]: close,
  }
}

const asFolder = (uri: string) => (uri.endsWith('/') ? uri : `${uri}/`)

/** Creates the context of the use cases from the engine's options and its open store. */
function makeContext(options: PawlOptions, store: Store, signal: AbortSignal): Context {
  const s3Buckets = options.s3Buckets ?? (options.fileRoots === undefined ? undefined : [])
  const wake = makeWake(store.messenger, queues => dueByQueue(store.sql, queues), signal)
  return {
    sql: store.sql,
    separate: store.separate ?? store.sql,
    wake,
    watchKey: makeKeyWatch(store.sql, wake, signal),
    claimHints: makeClaimHints(),
    feed: watchFeed(query => readEvents(store, query)),
    ends: makeEndWatch(ids => findEnded(store.sql, ids), signal),
    types: noTypes(),
    log: options.log ?? (() => {}),
    metrics: makeProcessMetrics(store.connections, store.statements),
    activities: new Activities(),
    ready: () => store.readiness.check(store.probe ?? store.sql, store.messenger === undefined),
    maxPayloadBytes: options.maxPayloadBytes ?? 1_048_576,
    lockSeconds: options.bounds?.lockSeconds ?? defaultBounds.lockSeconds,
    files: openFiles({
      ...options.files,
      ...(options.fileRoots !== undefined && { roots: options.fileRoots }),
      ...(s3Buckets !== undefined && { buckets: s3Buckets }),
    }),
    fileRoots: options.fileRoots?.map(root => asFolder(pathToFileURL(root).href)),
    s3Buckets,
    podRules: options.podRules,
    pipelines: readPipelines(options.pipelines),
    fileSignal: makeWakeSignal(),
    conditionTurns: new ConditionTurns(signal),
    insertSmallJob: mergeSubmits(async jobs => {
      const now = await retryConflicts(() => insertJobs(store.sql, jobs))
      wake.notify([...new Set(jobs.flatMap(queuesOfOpenStages))])
      return now
    }),
    oneConnection: store.messenger === undefined,
    knownLanes: new Set(),
    notifyOnCommit: store.notifyOnCommit,
    inForeignTransaction: store.inForeignTransaction,
    sqlFor: tx => (tx as Sql | undefined) ?? store.sql,
  }
}

/** Validates every pipeline when the engine opens, not when it is first used. */
function readPipelines(source: Readonly<Record<string, JobSpec | string>> = {}): Pipelines {
  return Object.fromEntries(Object.entries(source).map(([name, spec]) => [name, readPipeline(name, spec)]))
}

function readPipeline(name: string, source: JobSpec | string): JobSpec {
  checkOptions({ name }, { name: nameField }, 'pipelines')
  try {
    const spec = typeof source === 'string' ? parseText(source) : source
    parseJobSpec(spec)
    return spec
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    throw new Problem(error.code, { pipeline: name, ...error.details }, error)
  }
}

function parseText(text: string): JobSpec {
  const read = readYaml(text)
  if ('faults' in read) throw specInvalid(read.faults)
  return read.value as JobSpec
}

/** Types and queues in metrics, unless the caller names others. */
const unnamed = { named: [], most: 1000, others: otherLabel }

export type Internals = ReturnType<typeof internalsOf>

/** Use cases of servers, dialects and commands that are no operations of the API. */
function internalsOf(context: Context) {
  const { sql } = context
  const use =
    <Args extends unknown[], Answer>(useCase: (context: Context, ...args: Args) => Answer) =>
    (...args: Args): Answer =>
      useCase(context, ...args)
  return {
    /** The key with this secret; undefined: there is none, or it was revoked. */
    keyOf: use(keys.keyOf),
    anyKeys: use(keys.anyKeys),
    queuesOf: use(readQueuesOf),
    /** A task, and the ids of the keys that made its claims, as far as known. */
    claimedTask: use(readClaimedTask),
    /** For metrics: totals on which all servers of one database agree. */
    totals: async (types: TypesToName = unnamed, queues: QueuesToName = unnamed) => ({
      moves: await readTotals(sql, types),
      queues: await deepestQueues(sql, queues),
      deadLetters: await countDeadLetters(sql),
      feedLagSeconds: await feedLag(sql),
    }),
    /** The deepest queues, and all others as one. */
    deepestQueues: (names: QueuesToName) => deepestQueues(sql, names),
    /** Counts jobs, stages and tasks by state. */
    countsByState: (names: CountedNames) => countByState(sql, names),
    /** Why each of these tasks is in its state, where a reason was given. */
    reasonsOf: (taskIds: readonly string[]) => reasonsOf(sql, taskIds),
    countTasks: use(countTasksOf),
    taskCounts: use(countTasksOfStages),
    /** Resolves when the inputs of a job's open stages have become tasks, or the time is over. */
    inputsFound: use(waitForInputs),
    setJobPriority: use(setPriority),
    /** The database's clock in milliseconds. All times are measured by it. */
    clock: () => clockMs(sql),
  }
}

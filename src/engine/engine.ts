import type { SettledTask } from '../protocol/tasks/sync.ts'
import type { TaskDefinition } from '../protocol/tasks/task-type.ts'
import type { FeedPage, FeedQuery, NewTaskItem, QueuedTask, TaskOptions } from '../protocol/tasks/tasks.ts'
import { brokenRules } from '../store/admin/integrity.ts'
import type { Sql } from '../store/driver/sql.ts'
import { migrate } from '../store/schema/migrate.ts'
import { checkOptions } from './check.ts'
import type { CallerTransaction, Context } from './context.ts'
import { type Following, follow } from './feed/follow.ts'
import { type Internals, internalsOf } from './internals.ts'
import { makeContext } from './make-context.ts'
import { openStore, optionFields, type PawlOptions } from './open-store.ts'
import { type Caller, type EngineMethods, methodsFor, run } from './operations.ts'
import type { EnqueueCall } from './tasks/enqueue.ts'
import { completeIn } from './tasks/one-task.ts'
import { registerType } from './tasks/task-types.ts'
import { inOwnTransaction } from './unit-of-work.ts'

export type { PawlOptions } from './open-store.ts'

/** The engine in this process. A change that can join a transaction of yours takes its handle as the option tx. */
export interface Pawl extends EngineMethods {
  /** Enqueues one task. Its payload is checked against the schema of its type, if this process knows it. */
  enqueue<In>(type: string | TaskDefinition<In>, payload: In, options?: TaskOptions & EnqueueCall): Promise<QueuedTask>
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

/** The same object as the server, the worker, the dialects and the tests see it. It is not part of the public API. */
export interface Engine extends Pawl {
  readonly context: Context
  readonly internals: Internals
  /** For workers in this process. */
  completeIn(tx: CallerTransaction, settled: SettledTask, worker: string): Promise<void>
}

/** Opens the engine: on a PostgreSQL server if one is named, else on the embedded store. */
export const pawl: (options?: PawlOptions) => Promise<Pawl> = openEngine

/** Every `Pawl` was opened here. */
export const engineBehind = (pawl: Pawl): Engine => pawl as Engine

export async function openEngine(options: PawlOptions = {}): Promise<Engine> {
  checkOptions(options, optionFields, 'options')
  const store = await openStore(options)
  const ending = new AbortController()
  try {
    const context = makeContext(options, store, ending.signal)
    if (options.migrate !== false) await migrate(store.sql)
    return engineOn(context, async () => {
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

function engineOn(context: Context, close: () => Promise<void>): Engine {
  const caller: Caller = { context, queues: null }
  return {
    ...methodsFor(caller),
    async enqueue(type, payload, { tx, actor, idempotencyKey, holder, ...task } = {}) {
      if (typeof type !== 'string') await registerType(context, type, tx)
      const item: NewTaskItem = { ...task, type: typeof type === 'string' ? type : type.type, payload }
      const call = {
        ...(tx !== undefined && { tx }),
        ...(actor !== undefined && { actor }),
        ...(idempotencyKey !== undefined && { idempotencyKey }),
        ...(holder !== undefined && { holder }),
      }
      const [queued] = await run.enqueueMany(caller, [item], call)
      return queued!
    },
    register: definition => registerType(context, definition),
    transaction: work => inOwnTransaction(context, work, callersBounds),
    follow: (query, options) => follow(context.feed, query, options),
    ready: () => context.ready(),
    brokenRules: () => brokenRules(context.sql),
    context,
    internals: internalsOf(context),
    completeIn: (tx, settled, worker) => completeIn(context, tx, settled, worker),
    close,
    [Symbol.asyncDispose]: close,
  }
}

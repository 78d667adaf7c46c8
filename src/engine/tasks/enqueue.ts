import { type Attributes, type Span, SpanKind, type Tracer } from '@opentelemetry/api'
import { newId } from '../../kernel/id.ts'
import { Problem } from '../../kernel/problem.ts'
import { flattenSettings } from '../../kernel/settings.ts'
import { callFields } from '../../protocol/call-options.ts'
import { checkDeadlines, maxTasksPerCall, taskFields } from '../../protocol/tasks/new-task.ts'
import type { NewTaskItem, QueuedTask } from '../../protocol/tasks/tasks.ts'
import { inSpan, traceparentOf, tracer } from '../../protocol/tracing.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { createLanes, kindName } from '../../store/flow/task-lanes.ts'
import { insertTasks, type NewTask } from '../../store/tasks/enqueue.ts'
import { reserveIds } from '../../store/tasks/idempotency.ts'
import { checkedJson, checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { checkCommandFiles } from '../files/file-rules.ts'
import { mergeByStore, withoutStale } from '../merge-calls.ts'
import { retryConflicts } from '../retry.ts'
import { once, type UnitCall, unitOfWork } from '../unit-of-work.ts'
import { checkRegistered, insertChecked } from './payload-checks.ts'

/** A name is remembered for each combination of deadlines, which may be any numbers, so the memory is bounded. */
const maxKnownLanes = 20_000

/** Enqueues tasks, all or none. All of them are validated before any is written. */
export async function enqueueTasks(
  context: Context,
  items: readonly NewTaskItem[],
  call: UnitCall = {},
): Promise<QueuedTask[]> {
  if (items.length > maxTasksPerCall) throw new Problem('TOO_MANY_TASKS', { tasks: items.length })
  checkOptions(call, callFields, 'call')
  const tasks = items.map((item, index) => checkTask(context, item, call, `tasks[${index}]`))
  if (tasks.length === 0) return []
  await checkRegistered(context.types.known, { tasks, at: payloadAt })
  const tracing = tracer()
  // Callers that pass a traceparent create their own spans.
  if (tracing === undefined || tasks.every(task => task.traceparent !== undefined)) {
    return writeTasks(context, items, tasks, call)
  }
  const queues = [...new Set(tasks.map(({ queue }) => queue))]
  const attributes = {
    ...(queues.length === 1 && { 'messaging.destination.name': queues[0]! }),
    'messaging.batch.message_count': tasks.length,
  }
  const to = queues.length === 1 ? queues[0]! : `${queues.length} queues`
  return inProducerSpan(tracing, { name: 'enqueue', to }, attributes, async (traceparent, span) => {
    const traced = traceparent === undefined ? tasks : tasks.map(task => ({ traceparent, ...task }))
    const queued = await writeTasks(context, items, traced, call)
    const [{ id }] = queued as [QueuedTask]
    if (queued.length === 1) span.setAttributes({ 'messaging.message.id': id, 'pawl.task.id': id })
    return queued
  })
}

const payloadAt = (index: number) => `tasks[${index}].payload`

/** `items`, as requested, identify a repeated request. */
async function writeTasks(
  context: Context,
  items: readonly NewTaskItem[],
  tasks: readonly NewTask[],
  call: UnitCall,
): Promise<QueuedTask[]> {
  const actor = call.actor ?? 'producer'
  const checked = (sql: Sql, insert: (tasks: readonly NewTask[]) => Promise<QueuedTask[]>) =>
    insertChecked(context.types.schemas, sql, { tasks, at: payloadAt }, versions =>
      insert(withVersions(tasks, versions)),
    )
  if (mayShare(items, tasks, call)) {
    return unitOfWork(context, undefined, (_, after) => {
      after.addQueues(tasks.map(task => task.queue))
      return checked(context.sql, tasks => enqueueTogether(context.sql, { context, tasks, actor }))
    })
  }
  const chosen = new Set(tasks.flatMap(({ id }, index) => (items[index]!.id === undefined ? [] : [id])))
  const insert = (tx: Sql, tasks: readonly NewTask[]): Promise<QueuedTask[]> => {
    if (chosen.size === 0) return insertTasks(tx, tasks, actor)
    return tx.begin(async inner => {
      const queued = await insertTasks(inner, tasks, actor)
      const made = queued.flatMap(({ id, deduplicated }) => (deduplicated || !chosen.has(id) ? [] : [id]))
      await reserveIds(inner, made)
      return queued
    })
  }
  // Without an idempotency key, dedupe keys and chosen ids this is a single statement, which needs no transaction.
  return unitOfWork(context, call.tx, async (sql, after) => {
    const queue = async () => {
      await ensureLanes(context, sql, tasks)
      // A repeated request gets its first answer, even if the schema has changed since.
      const work = (tx: Sql) => checked(tx, tasks => insert(tx, tasks))
      return once(sql, call, ['enqueue', items], work).catch(throwIdTaken)
    }
    after.addQueues(tasks.map(task => task.queue))
    return sql.isTransaction ? queue() : retryConflicts(queue)
  })
}

/** The tasks, each with the version of the schema that its payload was checked against. */
function withVersions(tasks: readonly NewTask[], versions: ReadonlyMap<string, string>): readonly NewTask[] {
  if (versions.size === 0) return tasks
  return tasks.map(task => {
    const payloadVersion = versions.get(task.type)
    return payloadVersion === undefined ? task : { ...task, payloadVersion }
  })
}

/** A larger call has a statement of its own. */
const maxSharedBytes = 2 ** 18

/** An idempotency key, dedupe keys and chosen ids need a transaction of their own. */
function mayShare(items: readonly NewTaskItem[], tasks: readonly NewTask[], { tx, idempotencyKey }: UnitCall): boolean {
  if (tx !== undefined || idempotencyKey !== undefined || bytesOf(tasks) > maxSharedBytes) return false
  return items.every(({ id, dedupeKey }) => id === undefined && dedupeKey === undefined)
}

/** Approximate, without settings and metadata. */
function bytesOf(tasks: readonly NewTask[]): number {
  return tasks.reduce((sum, { payload }) => sum + payload.length + 500, 0)
}

interface WaitingTasks {
  readonly context: Context
  readonly tasks: readonly NewTask[]
  readonly actor: string
}

const merging = {
  // Two writes share the wait for the disk.
  concurrentRuns: 2,
  slowMs: 50,
  maxSize: 2 ** 20,
  sizeOf: ({ tasks }: WaitingTasks) => bytesOf(tasks),
  groupOf: ({ actor }: WaitingTasks) => actor,
}

/**
 * Writes small enqueues that arrive together with one statement. Those with stale schemas are refused. If another of
 * them fails, each is written alone.
 */
const enqueueTogether = mergeByStore(
  (calls: readonly WaitingTasks[]) => withoutStale(calls, ({ tasks }) => tasks.map(({ type }) => type), enqueueForAll),
  merging,
)

async function enqueueForAll(calls: readonly WaitingTasks[]): Promise<QueuedTask[][]> {
  const { context, actor } = calls[0]!
  const tasks = calls.flatMap(call => call.tasks)
  const queued = await retryConflicts(async () => {
    await ensureLanes(context, context.sql, tasks)
    return insertTasks(context.sql, tasks, actor)
  })
  let from = 0
  return calls.map(call => {
    from += call.tasks.length
    return queued.slice(from - call.tasks.length, from)
  })
}

function checkTask(context: Context, item: NewTaskItem, call: UnitCall, at: string): NewTask {
  if (typeof item !== 'object' || item === null) throw new Problem('OPTION_INVALID', { at, must: 'be an object' })
  checkOptions(item, taskFields, at)
  if (item.type === undefined) throw new Problem('OPTION_INVALID', { at, option: 'type', must: 'be given' })
  const {
    type,
    queue = type,
    priority = 0,
    runInSeconds,
    dedupeKey,
    correlationId,
    traceparent = call.traceparent,
  } = item
  checkCommandFiles(context, type, item.payload, `${at}.payload`)
  const settings = flattenSettings(item)
  if (settings !== undefined) checkDeadlines(settings, at)
  if (item.metadata !== undefined) checkedJson(item.metadata, context.maxPayloadBytes, `${at}.metadata`)
  return {
    id: item.id?.toLowerCase() ?? newId(),
    type,
    queue,
    priority,
    payload: checkedJson(item.payload, context.maxPayloadBytes, `${at}.payload`),
    ...(settings !== undefined && { settings }),
    ...(item.runAt !== undefined && { runAt: new Date(item.runAt) }),
    ...(runInSeconds !== undefined && { runInSeconds }),
    ...(item.keepUntil !== undefined && { keepUntil: new Date(item.keepUntil) }),
    ...(dedupeKey !== undefined && { dedupeKey }),
    ...(correlationId !== undefined && { correlationId }),
    ...(traceparent !== undefined && { traceparent }),
    ...(item.metadata !== undefined && { metadata: item.metadata }),
  }
}

/**
 * Lanes are created outside the caller's transaction, so that a long one does not block everybody's first task of a
 * queue. They are created on a separate connection, because such transactions may hold all others. The embedded store
 * has only one connection and creates them inside. If a lane is still missing (the database was emptied, or another
 * process has changed the deadlines of the type), it is created where the tasks are inserted.
 */
async function ensureLanes(context: Context, sql: Sql, tasks: readonly NewTask[]): Promise<void> {
  const missing = new Map<string, NewTask>()
  for (const task of tasks) {
    const name = kindName(task)
    if (!context.knownLanes.has(name)) missing.set(name, task)
  }
  if (missing.size === 0) return
  const outside = sql.isTransaction && !context.oneConnection ? context.separate : sql
  await createLanes(outside, [...missing.values()])
  // The caller's transaction may still roll back.
  if (outside.isTransaction) return
  if (context.knownLanes.size > maxKnownLanes) context.knownLanes.clear()
  for (const name of missing.keys()) context.knownLanes.add(name)
}

const idKeys = ['task_pkey', 'job_pkey', 'chosen_id_pkey']

/** Turns a unique violation of a caller-chosen id into the problem `ID_TAKEN`. Rethrows any other error. */
export function throwIdTaken(error: unknown): never {
  const { constraint = '', detail } = error as { constraint?: string; detail?: string }
  if (!idKeys.includes(constraint)) throw error
  const [, id] = /\(id\)=\((.*?)\)/.exec(detail ?? '') ?? []
  throw new Problem('ID_TAKEN', id === undefined ? {} : { id }, error)
}

/** Runs an enqueue or submit in a span of its own, and passes the traceparent to store. */
export function inProducerSpan<T>(
  tracing: Tracer,
  { name, to }: { name: 'enqueue' | 'submit'; to: string },
  attributes: Attributes,
  work: (traceparent: string | undefined, span: Span) => Promise<T>,
): Promise<T> {
  const messaging = {
    'messaging.system': 'pawl',
    'messaging.operation.name': name,
    'messaging.operation.type': 'send',
  }
  const options = { kind: SpanKind.PRODUCER, attributes: { ...messaging, ...attributes } }
  return inSpan(tracing, `${name} ${to}`, options, span => work(traceparentOf(span), span))
}

import { newId } from '../../kernel/id.ts'
import { Problem } from '../../kernel/problem.ts'
import { settingsOf } from '../../kernel/settings.ts'
import { callFields, checkDeadlines, maxTasksPerCall, taskFields } from '../../protocol/fields.ts'
import type { NewTaskItem, QueuedTask } from '../../protocol/tasks/tasks.ts'
import { tracer } from '../../protocol/tracing.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { reserveIds } from '../../store/tasks/chosen-ids.ts'
import { createLanes, insertTasks, kindName, type NewTask } from '../../store/tasks/enqueue.ts'
import { checkedJson, checkOptions } from '../check.ts'
import type { CallerTransaction, Context } from '../context.ts'
import { checkCommandFiles } from '../files/file-rules.ts'
import { type Idempotency, once } from '../once.ts'
import { again } from '../split.ts'
import { produced } from '../trace.ts'
import { unitOfWork } from '../unit-of-work.ts'
import { idTaken } from './id-taken.ts'

export interface EnqueueCall extends Idempotency {
  /** Queue in this transaction: the tasks are there when it commits, and never were if it does not. */
  readonly tx?: CallerTransaction
  /** Who asks, for the events. Default: producer. */
  readonly actor?: string
  /** For tasks that bring none of their own. */
  readonly traceparent?: string
}

/** Deadlines may be any number, and each is a kind of its own: so many are remembered. */
const lanesKnown = 20_000

/** Queues tasks, all or none. Everything is checked before anything is written. */
export async function enqueueTasks(
  context: Context,
  items: readonly NewTaskItem[],
  call: EnqueueCall = {},
): Promise<QueuedTask[]> {
  if (items.length > maxTasksPerCall) throw new Problem('TOO_MANY_TASKS', { tasks: items.length })
  checkOptions(call, callFields, 'call')
  const tasks = items.map((item, index) => checkTask(context, item, call, `tasks[${index}]`))
  if (tasks.length === 0) return []
  const tracing = tracer()
  // Whoever gives a traceparent traces by himself.
  if (tracing === undefined || tasks.every(task => task.traceparent !== undefined)) {
    return queueTasks(context, items, tasks, call)
  }
  const queues = [...new Set(tasks.map(({ queue }) => queue))]
  const attributes = {
    ...(queues.length === 1 && { 'messaging.destination.name': queues[0]! }),
    'messaging.batch.message_count': tasks.length,
  }
  const to = queues.length === 1 ? queues[0]! : `${queues.length} queues`
  return produced(tracing, { name: 'enqueue', to }, attributes, async (traceparent, span) => {
    const traced = traceparent === undefined ? tasks : tasks.map(task => ({ traceparent, ...task }))
    const queued = await queueTasks(context, items, traced, call)
    const [{ id }] = queued as [QueuedTask]
    if (queued.length === 1) span.setAttributes({ 'messaging.message.id': id, 'pawl.task.id': id })
    return queued
  })
}

/** `items` are what was asked for: by them a repeated call is known. */
async function queueTasks(
  context: Context,
  items: readonly NewTaskItem[],
  tasks: readonly NewTask[],
  call: EnqueueCall,
): Promise<QueuedTask[]> {
  const actor = call.actor ?? 'producer'
  const chosen = new Set(tasks.flatMap(({ id }, index) => (items[index]!.id === undefined ? [] : [id])))
  const insert = (tx: Sql): Promise<QueuedTask[]> => {
    if (chosen.size === 0) return insertTasks(tx, tasks, actor)
    return tx.begin(async inner => {
      const queued = await insertTasks(inner, tasks, actor)
      const made = queued.flatMap(({ id, deduplicated }) => (deduplicated || !chosen.has(id) ? [] : [id]))
      await reserveIds(inner, made)
      return queued
    })
  }
  // Without a key and chosen ids this is a single statement, which needs no transaction around it.
  return unitOfWork(context, call.tx, async (sql, after) => {
    const queue = async () => {
      await ensureLanes(context, sql, tasks)
      return once(sql, call, ['enqueue', items], insert).catch(idTaken)
    }
    after.wake(tasks.map(task => task.queue))
    return sql.isTransaction ? queue() : again(queue)
  })
}

function checkTask(context: Context, item: NewTaskItem, call: EnqueueCall, at: string): NewTask {
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
  const settings = settingsOf(item)
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
 * Lanes are made outside the caller's transaction, so that a long one does not hold up everybody's first task of a
 * queue, and on a connection aside, for the others may all be held by such transactions; on the embedded store, which
 * has one connection, inside it. What is missing even so (the database was emptied under this process, another has given
 * the type its deadlines) is made where the tasks are written.
 */
async function ensureLanes(context: Context, sql: Sql, tasks: readonly NewTask[]): Promise<void> {
  const missing = new Map<string, NewTask>()
  for (const task of tasks) {
    const name = kindName(task)
    if (!context.knownLanes.has(name)) missing.set(name, task)
  }
  if (missing.size === 0) return
  const outside = sql.isTransaction && !context.oneConnection ? context.aside : sql
  await createLanes(outside, [...missing.values()])
  // What a transaction made may still be rolled back.
  if (outside.isTransaction) return
  if (context.knownLanes.size > lanesKnown) context.knownLanes.clear()
  for (const name of missing.keys()) context.knownLanes.add(name)
}

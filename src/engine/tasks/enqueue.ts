import { newId } from '../../kernel/id.ts'
import { Problem } from '../../kernel/problem.ts'
import { flattenSettings } from '../../kernel/settings.ts'
import { callFields } from '../../protocol/call-options.ts'
import { checkDeadlines, maxTasksPerCall, taskFields } from '../../protocol/tasks/new-task.ts'
import type { NewTaskItem, QueuedTask } from '../../protocol/tasks/tasks.ts'
import { tracer } from '../../protocol/tracing.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { reserveIds } from '../../store/tasks/chosen-ids.ts'
import { createLanes, insertTasks, kindName, type NewTask } from '../../store/tasks/enqueue.ts'
import { checkedJson, checkOptions } from '../check.ts'
import type { CallerTransaction, Context } from '../context.ts'
import { checkCommandFiles } from '../files/file-rules.ts'
import { type Idempotency, once } from '../once.ts'
import { retryConflicts } from '../retry.ts'
import { inProducerSpan } from '../trace.ts'
import { unitOfWork } from '../unit-of-work.ts'

export interface EnqueueCall extends Idempotency {
  /** Enqueue in this transaction: the tasks appear when it commits and disappear if it rolls back. */
  readonly tx?: CallerTransaction
  /** Actor named in the events. Default: producer. */
  readonly actor?: string
  /** For tasks that have none of their own. */
  readonly traceparent?: string
}

/** Each deadline makes a lane of its own and may be any number, so only this many lanes are remembered. */
const maxKnownLanes = 20_000

/** Enqueues tasks, all or none. Everything is validated before anything is written. */
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

/** `items`, as requested, identify a repeated request. */
async function writeTasks(
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
  // Without an idempotency key and chosen ids this is a single statement, which needs no transaction.
  return unitOfWork(context, call.tx, async (sql, after) => {
    const queue = async () => {
      await ensureLanes(context, sql, tasks)
      return once(sql, call, ['enqueue', items], insert).catch(throwIdTaken)
    }
    after.addQueues(tasks.map(task => task.queue))
    return sql.isTransaction ? queue() : retryConflicts(queue)
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
  const outside = sql.isTransaction && !context.oneConnection ? context.aside : sql
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

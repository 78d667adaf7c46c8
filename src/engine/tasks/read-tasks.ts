import { Problem } from '../../kernel/problem.ts'
import { toSettingsInput } from '../../kernel/settings.ts'
import {
  type QueueView,
  type TaskTypeQuery,
  taskTypeQueryFields,
  type WorkerQuery,
  type WorkerView,
  workerQueryFields,
} from '../../protocol/admin/admin.ts'
import { namedPageFields, type PageQuery } from '../../protocol/call-options.ts'
import { type DeadLetterQuery, deadLetterQueryFields } from '../../protocol/tasks/dead-letters.ts'
import {
  type NamedTaskType,
  type Page,
  type TaskQuery,
  type TasksOfQuery,
  type TaskTypeRecord,
  type TaskView,
  taskQueryFields,
  tasksOfFields,
} from '../../protocol/tasks/tasks.ts'
import { name } from '../../schema/fields.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { listQueues } from '../../store/flow/queue-depths.ts'
import { countTasks, listTasks } from '../../store/tasks/list-tasks.ts'
import {
  getClaimedTask,
  getTask,
  getTasks,
  getTaskType,
  listTaskTypes,
  queuesOfTasks,
  type TaskRow,
  type TaskTypeRow,
} from '../../store/tasks/read-tasks.ts'
import { listWorkers } from '../../store/tasks/sessions.ts'
import { checkId, checkOptions, decode, isId, nextCursor } from '../check.ts'
import type { Context } from '../context.ts'
import { readJob, readStage } from '../jobs/read-jobs.ts'
import { mergeByStore } from '../merge-calls.ts'
import { iso, parseDate, toTaskView } from './task-view.ts'

/** Reads of tasks that arrive together share a statement: reports that were merged are all answered at once. */
const readTogether = mergeByStore(readTasks, {
  concurrentRuns: 2,
  // A task may be large, so few are read at once.
  maxSize: 32,
  sizeOf: () => 1,
})

async function readTasks(ids: readonly string[], sql: Sql): Promise<(TaskRow | undefined)[]> {
  const rows = new Map((await getTasks(sql, [...new Set(ids)])).map(row => [row.id, row]))
  return ids.map(id => rows.get(id))
}

export async function readTask({ sql }: Pick<Context, 'sql'>, id: string): Promise<TaskView> {
  const taskId = checkId(id)
  const row = await (sql.isTransaction ? getTask(sql, taskId) : readTogether(sql, taskId))
  if (row === undefined) throw new Problem('TASK_NOT_FOUND', { id })
  return toTaskView(row)
}

/** A task with the history of its claims. */
export interface ClaimedTaskView {
  readonly task: TaskView
  /** The id of the key that made each claim, by epoch; null: the claimer had no key, or it is not known. */
  readonly keys: ReadonlyMap<number, string | null>
}

export async function readClaimedTask({ sql }: Context, id: string): Promise<ClaimedTaskView> {
  const row = await getClaimedTask(sql, checkId(id))
  if (row === undefined) throw new Problem('TASK_NOT_FOUND', { id })
  return { task: toTaskView(row), keys: new Map(row.claims?.map(({ epoch, key }) => [epoch, key])) }
}

/** Returns one page of tasks, newest first by default. Filters can be combined. */
export async function findTasks({ sql }: Context, query: TaskQuery = {}): Promise<Page<TaskView>> {
  checkOptions(query, taskQueryFields, 'query')
  const { limit = 100, order = 'newest', offset = 0 } = query
  const filter = {
    ids: query.ids ?? null,
    jobId: query.jobId === undefined ? null : checkId(query.jobId, 'JOB_NOT_FOUND'),
    stageId: query.stageId === undefined ? null : checkId(query.stageId, 'STAGE_NOT_FOUND'),
    queue: query.queue ?? null,
    type: query.type ?? null,
    states: query.state === undefined ? [] : [query.state].flat(),
    correlationId: query.correlationId ?? null,
    reasonCode: query.reasonCode ?? null,
    message: query.message ?? null,
    createdFrom: parseDate(query.createdFrom),
    createdTo: parseDate(query.createdTo),
  }
  const cursor =
    query.cursor === undefined
      ? null
      : checkId(decode<{ before: string }>(query.cursor, 'before').before, 'CURSOR_INVALID')
  const rows = await listTasks(sql, filter, { order, cursor, offset, limit })
  const items = rows.map(toTaskView)
  const next = nextCursor(rows, ({ id }) => ({ before: id }))
  return { items, next, ...(query.total === true && { total: await countTasks(sql, filter) }) }
}

export async function findDeadLetters(context: Context, query: DeadLetterQuery = {}): Promise<Page<TaskView>> {
  checkOptions(query, deadLetterQueryFields, 'query')
  return findTasks(context, { ...query, state: 'dead_lettered' })
}

/** Like `findTasks`, for one existing job or stage. */
export async function findTasksOf(
  context: Context,
  entity: 'job' | 'stage',
  id: string,
  query: TasksOfQuery = {},
): Promise<Page<TaskView>> {
  checkOptions(query, tasksOfFields, 'query')
  await (entity === 'job' ? readJob : readStage)(context, id)
  return findTasks(context, { ...query, [entity === 'job' ? 'jobId' : 'stageId']: id })
}

/** Returns the queues of these tasks. Invalid and unknown ids are ignored. */
export async function readQueuesOf({ sql }: Context, ids: readonly unknown[]): Promise<string[]> {
  const real = ids.filter(isId)
  return real.length === 0 ? [] : queuesOfTasks(sql, real)
}

/** Returns the settings of a type in the form in which they are set. */
export async function readTaskType({ sql }: Context, type: string): Promise<TaskTypeRecord> {
  checkOptions({ type }, { type: name }, 'task type')
  const known = await getTaskType(sql, type)
  if (known === undefined) throw new Problem('TASK_TYPE_UNKNOWN', { type })
  return recordOf(known)
}

export async function findTaskTypes({ sql }: Context, query: TaskTypeQuery = {}): Promise<Page<NamedTaskType>> {
  checkOptions(query, taskTypeQueryFields, 'query')
  const { cursor, limit = 100, type } = query
  const rows = await listTaskTypes(sql, { after: nameInCursor(cursor), limit }, type)
  const items = rows.map(({ more: _, ...known }) => ({ type: known.type, ...recordOf(known) }))
  return { items, next: nextCursor(rows, ({ type }) => ({ name: type })) }
}

function recordOf({ settings, payloadSchema }: TaskTypeRow): TaskTypeRecord {
  return { ...toSettingsInput(settings), ...(payloadSchema !== null && { payloadSchema }) }
}

/** Returns queues with their depths. */
export async function findQueues({ sql }: Context, query: PageQuery = {}): Promise<Page<QueueView>> {
  checkOptions(query, namedPageFields, 'query')
  const rows = await listQueues(sql, { after: nameInCursor(query.cursor), limit: query.limit ?? 100 })
  const items = rows.map(({ more: _, ...queue }) => queue)
  return { items, next: nextCursor(rows, ({ queue }) => ({ name: queue })) }
}

/** Returns worker processes that were seen recently. */
export async function findWorkers({ sql }: Context, query: WorkerQuery = {}): Promise<Page<WorkerView>> {
  checkOptions(query, workerQueryFields, 'query')
  const { withinSeconds = 60, limit = 100, cursor } = query
  const afterSession = cursor === undefined ? '' : decode<{ session: string }>(cursor, 'session').session
  if (afterSession !== '' && !isId(afterSession)) throw new Problem('CURSOR_INVALID', { cursor })
  const rows = await listWorkers(sql, withinSeconds, { after: nameInCursor(cursor), afterSession, limit })
  const items = rows.map(({ more: _, ...row }) => ({ ...row, startedAt: iso(row.startedAt), seenAt: iso(row.seenAt) }))
  return { items, next: nextCursor(rows, ({ worker, session }) => ({ name: worker, session: session ?? '' })) }
}

/** Returns the name after which the page begins. Without a cursor, it begins with the first. */
function nameInCursor(cursor: string | undefined): string {
  const after = cursor === undefined ? '' : decode<{ name: string }>(cursor, 'name').name
  if (typeof after !== 'string') throw new Problem('CURSOR_INVALID', { cursor })
  return after
}

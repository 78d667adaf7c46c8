import { Problem } from '../../kernel/problem.ts'
import { toSettingsInput } from '../../kernel/settings.ts'
import {
  type QueueView,
  type TaskTypeQuery,
  taskTypeQueryFields,
  type WorkerQuery,
  type WorkerView,
  workerQueryFields,
} from '../../protocol/admin/operate.ts'
import { namedPageFields, type PageQuery, pageFields } from '../../protocol/call-options.ts'
import { type DeadLetterQuery, deadLetterQueryFields } from '../../protocol/tasks/dead-letters.ts'
import {
  type AttemptView,
  type EventView,
  type FeedPage,
  type FeedQuery,
  feedFields,
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
import type { PageRow } from '../../store/driver/paging.ts'
import type { Sql } from '../../store/driver/sql.ts'
import {
  eventsOfEntity,
  eventsOfTask,
  type FeedRow,
  isSame,
  type Mark,
  type Position,
  readFeed,
  readLatest,
  readMark,
  start,
} from '../../store/feed/feed.ts'
import { findPositionBefore } from '../../store/feed/feed-time.ts'
import { currentGeneration } from '../../store/feed/generation.ts'
import { listQueues } from '../../store/flow/queue-depths.ts'
import {
  countTasks,
  getClaimedTask,
  getTask,
  getTaskType,
  listTasks,
  listTaskTypes,
  queuesOfTasks,
  type TaskTypeRow,
} from '../../store/tasks/read-tasks.ts'
import { listWorkers } from '../../store/tasks/sessions.ts'
import { checkId, checkOptions, isId } from '../check.ts'
import type { Context } from '../context.ts'
import { decode, encode } from '../cursor.ts'
import { readJob, readStage } from '../jobs/read-jobs.ts'
import { iso, parseDate, toAttempts, toEventView, toTaskView } from './task-view.ts'

export async function readTask({ sql }: Context, id: string): Promise<TaskView> {
  const row = await getTask(sql, checkId(id))
  if (row === undefined) throw new Problem('TASK_NOT_FOUND', { id })
  return toTaskView(row)
}

/** A task, and the ids of the keys that made its claims, as far as known. */
export interface ClaimedTaskView {
  readonly task: TaskView
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
  const rows = await listTasks(sql, filter, { order, cursor, offset, limit: limit + 1 })
  const items = rows.slice(0, limit).map(toTaskView)
  const next = rows.length > limit ? encode({ before: items.at(-1)!.id }) : null
  return { items, next, ...(query.total === true && { total: await countTasks(sql, filter) }) }
}

export async function findDeadLetters(context: Context, query: DeadLetterQuery = {}): Promise<Page<TaskView>> {
  checkOptions(query, deadLetterQueryFields, 'query')
  return findTasks(context, { ...query, state: 'dead_lettered' })
}

const readers = { task: readTask, stage: readStage, job: readJob }
const notFound = { task: 'TASK_NOT_FOUND', stage: 'STAGE_NOT_FOUND', job: 'JOB_NOT_FOUND' } as const

/** Like `findTasks`, for one existing job or stage. */
export async function findTasksOf(
  context: Context,
  entity: 'job' | 'stage',
  id: string,
  query: TasksOfQuery = {},
): Promise<Page<TaskView>> {
  checkOptions(query, tasksOfFields, 'query')
  await readers[entity](context, id)
  return findTasks(context, { ...query, [entity === 'job' ? 'jobId' : 'stageId']: id })
}

/** Returns the events of one task, stage or job, oldest first. */
export async function readEventsOf(
  context: Context,
  entity: 'task' | 'stage' | 'job',
  id: string,
  ask: { limit?: number; cursor?: string } = {},
): Promise<Page<EventView>> {
  checkOptions(ask, pageFields, 'events')
  const { limit = 1000 } = ask
  const after = ask.cursor === undefined ? 0 : decode<{ seq: number }>(ask.cursor, 'seq').seq
  if (!isSeq(after)) throw new Problem('CURSOR_INVALID', { cursor: ask.cursor })
  const of = checkId(id, notFound[entity])
  const rows = await (entity === 'task'
    ? eventsOfTask(context.sql, of, after, limit + 1)
    : eventsOfEntity(context.sql, entity, of, after, limit + 1))
  // No rows: either the end of the events, or the entity does not exist.
  if (rows.length === 0) await readers[entity](context, id)
  const items = rows.slice(0, limit).map(toEventView)
  return { items, next: rows.length > limit ? encode({ seq: items.at(-1)!.seq }) : null }
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
  if (typeof after !== 'string' || after.includes('\0')) throw new Problem('CURSOR_INVALID', { cursor })
  return after
}

/** Returns the cursor behind the last row, or null on the last page. */
function nextCursor<Row>(rows: readonly PageRow<Row>[], positionOf: (row: Row) => object): string | null {
  const last = rows.at(-1)
  return last?.more ? encode(positionOf(last)) : null
}

export async function readAttempts(context: Context, id: string): Promise<AttemptView[]> {
  const events: EventView[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await readEventsOf(context, 'task', id, cursor === undefined ? {} : { cursor })
    events.push(...page.items)
    if (page.next === null) return toAttempts(events)
    cursor = page.next
  }
}

/**
 * Returns events from a cursor on, or the latest ones, each entity's in the order of `seq`. Never skips an event that
 * committed late.
 */
export async function readEvents({ sql }: Pick<Context, 'sql'>, ask: FeedQuery = {}): Promise<FeedPage> {
  checkOptions(ask, feedFields, 'feed')
  const { cursor, latest, limit = 1000, types = [] } = ask
  const [since, until] = [parseDate(ask.since), parseDate(ask.until)]
  if (latest !== undefined && (cursor !== undefined || ask.limit !== undefined)) {
    const must = 'be used without a cursor and a limit'
    throw new Problem('OPTION_INVALID', { at: 'feed', option: 'latest', must })
  }
  const jobId = ask.jobId === undefined ? null : checkId(ask.jobId, 'JOB_NOT_FOUND')
  const of = await currentGeneration(sql)
  const toItem = (row: FeedRow) => ({ ...toEventView(row), cursor: feedCursor(of, row) })
  if (latest !== undefined) {
    const { events, end } = await readLatest(sql, { limit: latest, types, jobId, since, until })
    return { items: events.map(toItem), next: feedCursor(of, await markOf(sql, end, events)), more: false }
  }
  const begin = async () => (since === null ? start : findPositionBefore(sql, since))
  const after = cursor === undefined ? await begin() : await readCursor(sql, cursor, of)
  const { events, next, more } = await readFeed(sql, { after, limit, types, jobId, since, until })
  const end = cursor !== undefined && isSame(next, after) ? (after as Mark) : await markOf(sql, next, events)
  return { items: events.map(toItem), next: feedCursor(of, end), more }
}

/** Returns the mark of a position, which is usually that of the last event on the page. */
async function markOf(sql: Sql, at: Position, events: readonly FeedRow[]): Promise<Mark | undefined> {
  const last = events.at(-1)
  if (last !== undefined && isSame(last, at)) return last
  return isSame(at, start) ? undefined : readMark(sql, at)
}

/** A cursor names the event before it, so that a store that has lost this event can be detected. */
function feedCursor(of: string, mark: Mark | undefined): string {
  if (mark === undefined) return encode({ ...start, of })
  const { tx, n, k, entityId, seq, atUs } = mark
  return encode({ tx, n, k, of, entityId, seq, atUs })
}

export const isPlace = (value: number) => Number.isSafeInteger(value) && value >= 0
/** Limited so that a page behind it does not overflow. */
export const isSeq = (value: number) => isPlace(value) && value < 2 ** 31 - 10_000

async function readCursor(sql: Sql, cursor: string, of: string): Promise<Position | Mark> {
  const at = decode<Mark & { of: string }>(cursor, 'tx')
  if (![at.tx, at.n, at.k].every(isPlace) || at.k > 2 ** 31 - 1) throw new Problem('CURSOR_INVALID', { cursor })
  if (at.of !== of) throw new Problem('CURSOR_GONE')
  if (isSame(at, start)) return start
  const found = await readMark(sql, at)
  if (found?.atUs !== at.atUs) throw new Problem('CURSOR_GONE')
  const isSameEvent = found.entityId === at.entityId && found.seq === at.seq
  if (found.entityId !== null && !isSameEvent) throw new Problem('CURSOR_GONE')
  return found
}

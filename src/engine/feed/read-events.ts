/** Reads events: those of one task, stage or job, the attempts that follow from them, and the feed of all. */
import { Problem } from '../../kernel/problem.ts'
import { pageFields } from '../../protocol/call-options.ts'
import {
  type AttemptView,
  type EventView,
  type FeedPage,
  type FeedQuery,
  feedFields,
  type Page,
  type TaskEventQuery,
  taskEventFields,
} from '../../protocol/tasks/tasks.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { eventsAndPulses, eventsOfEntity, eventsOfTask, type PulsePosition } from '../../store/feed/entity-events.ts'
import {
  type EventRow,
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
import { checkId, checkOptions, decode, encode, nextCursor } from '../check.ts'
import type { Context } from '../context.ts'
import { readJob, readStage } from '../jobs/read-jobs.ts'
import { readTask } from '../tasks/read-tasks.ts'
import { parseDate } from '../tasks/task-view.ts'

const readers = { task: readTask, stage: readStage, job: readJob }
const notFound = { task: 'TASK_NOT_FOUND', stage: 'STAGE_NOT_FOUND', job: 'JOB_NOT_FOUND' } as const

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
    ? eventsOfTask(context.sql, of, after, limit)
    : eventsOfEntity(context.sql, entity, of, after, limit))
  // No rows: either the end of the events, or the entity does not exist.
  if (rows.length === 0) await readers[entity](context, id)
  return { items: rows.map(toEventView), next: nextCursor(rows, ({ seq }) => ({ seq })) }
}

/** Returns the events of one task, oldest first, with its heartbeats if requested. */
export async function readTaskEvents(
  context: Context,
  id: string,
  query: TaskEventQuery = {},
): Promise<Page<EventView>> {
  checkOptions(query, taskEventFields, 'events')
  const { pulses = false, ...page } = query
  if (!pulses) return readEventsOf(context, 'task', id, page)
  const { limit = 1000, cursor } = page
  const rows = await eventsAndPulses(context.sql, checkId(id), positionIn(cursor), limit)
  if (rows.length === 0) await readTask(context, id)
  const items = rows.map(({ us, ...row }) => toEventView(us === 0 ? row : { ...row, pulseUs: us }))
  const last = rows.at(-1)
  return { items, next: last?.more ? encode({ seq: last.seq, us: last.us }) : null }
}

function positionIn(cursor: string | undefined): PulsePosition {
  if (cursor === undefined) return { seq: 0, us: 0 }
  const { seq, us = 0 } = decode<Partial<PulsePosition>>(cursor, 'seq')
  if (!isSeq(seq!) || !isPlace(us)) throw new Problem('CURSOR_INVALID', { cursor })
  return { seq: seq!, us }
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

/** Derives the attempts of a task from its events, one per epoch. */
function toAttempts(events: readonly EventView[]): AttemptView[] {
  const attempts = new Map<number, AttemptView>()
  for (const event of events) {
    if (event.type === 'task.claimed') {
      const worker = event.actor.replace(/^worker:/, '')
      const begun = { startedAt: null, endedAt: null, outcome: null, cause: null, reason: null, error: null }
      attempts.set(event.epoch, { epoch: event.epoch, worker, claimedAt: event.ts, ...begun })
      continue
    }
    const attempt = attempts.get(event.epoch)
    if (attempt === undefined || attempt.endedAt !== null || event.from === event.to) continue
    if (event.type === 'task.started') attempts.set(event.epoch, { ...attempt, startedAt: event.ts })
    else {
      const error = (event.payload.error as AttemptView['error']) ?? null
      const reason = typeof event.payload.reason === 'string' ? event.payload.reason : null
      attempts.set(event.epoch, { ...attempt, endedAt: event.ts, outcome: event.to, cause: event.cause, reason, error })
    }
  }
  return [...attempts.values()]
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

const isPlace = (value: number) => Number.isSafeInteger(value) && value >= 0
/** Limited so that a page behind it does not overflow. */
const isSeq = (value: number) => isPlace(value) && value < 2 ** 31 - 10_000

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

function toEventView(row: EventRow): EventView {
  return {
    id: row.pulseUs === undefined ? `${row.entityId}:${row.seq}` : `${row.entityId}:${row.seq}@${row.pulseUs}`,
    entity: row.type.slice(0, row.type.indexOf('.')) as EventView['entity'],
    entityId: row.entityId,
    jobId: row.jobId,
    seq: row.seq,
    type: row.type,
    from: row.fromState,
    to: row.toState,
    ts: row.ts.toISOString(),
    actor: row.actor,
    cause: row.cause,
    correlationId: row.correlationId,
    traceId: row.traceparent?.split('-')[1] ?? null,
    epoch: row.epoch,
    payload: row.payload ?? {},
    version: 1,
  }
}

/**
 * The event feed. A position is (transaction, statement, index). The feed reads only below the oldest running
 * transaction: a transaction that commits late gets a position after everything that was read, so no event is skipped.
 */
import { maxPageBytes } from '../driver/paging.ts'
import { viaIndex } from '../driver/plans.ts'
import { literal, type Sql } from '../driver/sql.ts'

export interface Position {
  readonly tx: number
  readonly n: number
  /** How many events of that statement have been read. */
  readonly k: number
}

export interface EventRow {
  readonly entityId: string
  readonly seq: number
  readonly epoch: number
  readonly ts: Date
  readonly type: string
  readonly fromState: string | null
  readonly toState: string
  readonly actor: string
  readonly cause: string | null
  readonly jobId: string | null
  readonly payload: Record<string, unknown> | null
  readonly correlationId: string | null
  readonly traceparent: string | null
  /** The time of a heartbeat. */
  readonly pulseUs?: number
}

/** An event with its position in the feed. */
export interface FeedRow extends EventRow, Position {
  /** When its statement ran, in microseconds since 1970. */
  readonly atUs: number
}

/** A position and the event there. In a restored store, another event is there, or none. */
export interface Mark extends Position {
  /** Null: the entities were deleted, and only the position was kept. */
  readonly entityId: string | null
  readonly seq: number | null
  readonly atUs: number
}

/** Reads the event at a position. Undefined if there is none. */
export async function readMark(sql: Sql, { tx, n, k }: Position): Promise<Mark | undefined> {
  const [row] = await sql<Mark>`
    select tx, n, ${k}::int as k, ids[${k}::int] as entity_id, seqs[${k}::int] as seq,
           (extract(epoch from at) * 1000000)::bigint as at_us
      from pawl.change
     where tx = ${tx}::bigint and n = ${n}::bigint and (cardinality(ids) >= ${k}::int or cardinality(ids) = 0)`
  return row
}

/**
 * Seconds for which the feed has been held back: the age of the oldest event that it cannot show yet, because an older
 * transaction is still running in any database of the server. 0: it shows everything.
 */
export async function feedLag(sql: Sql): Promise<number> {
  const [row] = await sql<{ seconds: number }>`
    select extract(epoch from clock_timestamp() - at)::float8 as seconds
      from pawl.change
     where tx >= pg_snapshot_xmin(pg_current_snapshot())::text::bigint
     order by tx, n limit 1`
  return Math.max(0, row?.seconds ?? 0)
}

export const start: Position = { tx: 0, n: 0, k: 0 }
const changesPerPage = 500
/**
 * Changes are recorded almost in the order of their times, but a transaction may be recorded after one that began
 * later, and a worker may report a start late. A search by time looks this much further. Events that were recorded even
 * later are not found.
 */
export const recordedWithinSeconds = 60
/** If a filter matches few events, this many are scanned at a time, and this many times per response. */
const filteredWindow = 2000
const maxRounds = 20

interface Change {
  readonly tx: number
  readonly n: number
  readonly size: number
  readonly at: Date
}

export interface FeedFilter {
  readonly limit: number
  readonly types: readonly string[]
  readonly jobId: string | null
  /** Time of the event, both ends included. */
  readonly since: Date | null
  readonly until: Date | null
}

const isFiltered = ({ types, jobId, since, until }: FeedFilter) =>
  types.length > 0 || jobId !== null || since !== null || until !== null

/**
 * Reads events after `after`, in order, and the position from which to continue. `more`: there may be further events
 * already.
 */
export async function readFeed(
  sql: Sql,
  ask: FeedFilter & { after: Position },
): Promise<{ events: FeedRow[]; next: Position; more: boolean }> {
  const window = isFiltered(ask) ? Math.max(ask.limit, filteredWindow) : ask.limit
  let at = ask.after
  for (let round = 0; round < maxRounds; round++) {
    const changes = recordedUntil(ask.until, await changesFrom(sql, at))
    if (changes.length === 0) return { events: [], next: at, more: false }
    const { until: end } = await fitting(sql, { after: at, until: pageEnd(changes, at, window) }, 'until')
    const events = await eventsBetween(sql, at, end, ask)
    const page = events.slice(0, ask.limit)
    const last = page.at(-1)
    const next = last !== undefined && page.length < events.length ? { tx: last.tx, n: last.n, k: last.k } : end
    if (page.length > 0) return { events: page, next, more: true }
    // If nothing in a window matches, the next one follows.
    at = end
  }
  return { events: [], next: at, more: true }
}

/**
 * Returns the end of the feed and the latest events before it, oldest first. Everything that commits later comes after
 * this end, because below the oldest running transaction nothing more can commit. It scans backwards in a bounded
 * number of steps, so with a narrow filter, after many deletions, or if events are large, it may return fewer events
 * than exist.
 */
export async function readLatest(sql: Sql, ask: FeedFilter): Promise<{ events: FeedRow[]; end: Position }> {
  const end = await endOfFeed(sql)
  let events: FeedRow[] = []
  let until = end
  for (let round = 0; round < maxRounds && events.length < ask.limit; round++) {
    const window = round === 0 && !isFiltered(ask) ? ask.limit : Math.max(ask.limit, filteredWindow)
    const whole = { after: pageStart(await changesUntil(sql, until), until, window), until }
    if (isSame(whole.after, until)) break
    const { after } = await fitting(sql, whole, 'after')
    events = [...(await eventsBetween(sql, after, until, ask)), ...events]
    until = after
    if (!isSame(after, whole.after)) break
  }
  return { events: events.slice(Math.max(0, events.length - ask.limit)), end }
}

async function endOfFeed(sql: Sql): Promise<Position> {
  const [last] = await sql<Position>`
    select tx, n, cardinality(ids) as k
      from pawl.change
     where tx < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
     order by tx desc, n desc
     limit 1`
  return last ?? start
}

function changesFrom(sql: Sql, { tx, n, k }: Position): Promise<Change[]> {
  return sql<Change>`
    select tx, n, cardinality(ids) as size, at
      from pawl.change
     where (tx, n) >= (${tx}::bigint, ${n}::bigint)
       and (tx, n, cardinality(ids)) > (${tx}::bigint, ${n}::bigint, ${k}::int)
       -- Changes are empty if all their entities were deleted.
       and cardinality(ids) > 0
       and tx < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
     order by tx, n
     limit ${changesPerPage}::int`
}

/**
 * The changes before the first one that was recorded so late that no event after it can be of this moment or earlier.
 */
function recordedUntil(moment: Date | null, changes: readonly Change[]): readonly Change[] {
  if (moment === null) return changes
  const tooLate = moment.getTime() + recordedWithinSeconds * 1000
  const end = changes.findIndex(({ at }) => at.getTime() > tooLate)
  return end === -1 ? changes : changes.slice(0, end)
}

/** The end of a page of at most `limit` events. */
function pageEnd(changes: readonly Change[], after: Position, limit: number): Position {
  let left = limit
  let at = after
  for (const { tx, n, size } of changes) {
    const read = tx === after.tx && n === after.n ? after.k : 0
    const take = Math.min(left, size - read)
    if (take === 0) break
    at = { tx, n, k: read + take }
    left -= take
  }
  return at
}

function changesUntil(sql: Sql, { tx, n }: Position): Promise<Change[]> {
  return sql<Change>`
    select tx, n, cardinality(ids) as size, at
      from pawl.change
     where (tx, n) <= (${tx}::bigint, ${n}::bigint) and cardinality(ids) > 0
     order by tx desc, n desc
     limit ${changesPerPage}::int`
}

/** The start of a page of at most `limit` events before `until`; `until` itself if there are none. */
function pageStart(changes: readonly Change[], until: Position, limit: number): Position {
  let left = limit
  let at = until
  for (const { tx, n, size } of changes) {
    const unread = tx === until.tx && n === until.n ? until.k : size
    const take = Math.min(left, unread)
    at = { tx, n, k: unread - take }
    left -= take
    if (left === 0) break
  }
  return at
}

export const isSame = (one: Position, other: Position) => one.tx === other.tx && one.n === other.n && one.k === other.k

interface Span {
  readonly after: Position
  readonly until: Position
}

/** The entity of entry `u` of change `c`, with what its events do not contain. */
const entityOfEntry = literal(`(
             select id, history, job_id, correlation_id, traceparent from pawl.task
              where c.entity = 'task' and id = ${viaIndex('u.id').literal}
              union all
             select s.id, s.history, s.job_id, j.correlation_id, j.traceparent
               from pawl.stage s join pawl.job j on j.id = ${viaIndex('s.job_id').literal}
              where c.entity = 'stage' and s.id = ${viaIndex('u.id').literal}
              union all
             select id, history, id, correlation_id, traceparent from pawl.job
              where c.entity = 'job' and id = ${viaIndex('u.id').literal}
              union all
             select a.id, a.history, a.job_id, t.correlation_id, t.traceparent
               from pawl.artifact a join pawl.task t on t.id = ${viaIndex('a.task_id').literal}
              where c.entity = 'artifact' and a.id = ${viaIndex('u.id').literal})`)

/**
 * The part of a span whose histories have at most as many bytes as a page: from its start, or up to its end if `moves`
 * is `after`. Histories are not read for this, and the first one counts as fitting.
 */
async function fitting(sql: Sql, { after, until }: Span, moves: 'after' | 'until'): Promise<Span> {
  const direction = literal(moves === 'until' ? 'asc' : 'desc')
  const [last] = await sql<Position>`
    select tx, n, k
      from (select c.tx, c.n, u.k::int as k, row_number() over in_order as place,
                   sum(pawl.estimated_bytes(t.history)) over in_order as bytes_so_far
              from pawl.change c
             cross join unnest(c.ids) with ordinality as u (id, k)
             cross join lateral ${entityOfEntry} as t
             where (c.tx, c.n) >= (${after.tx}::bigint, ${after.n}::bigint)
               and (c.tx, c.n) <= (${until.tx}::bigint, ${until.n}::bigint)
               and (c.tx, c.n, u.k) > (${after.tx}::bigint, ${after.n}::bigint, ${after.k}::int)
               and (c.tx, c.n, u.k) <= (${until.tx}::bigint, ${until.n}::bigint, ${until.k}::int)
            window in_order as (order by c.tx ${direction}, c.n ${direction}, u.k ${direction})) as measured
     where place > 1 and bytes_so_far > ${maxPageBytes}::int
     order by place limit 1`
  // The page ends before the first event that does not fit.
  if (last === undefined) return { after, until }
  return moves === 'after' ? { after: last, until } : { after, until: { ...last, k: last.k - 1 } }
}

function eventsBetween(
  sql: Sql,
  after: Position,
  until: Position,
  { types, jobId, since, until: latest }: FeedFilter,
): Promise<FeedRow[]> {
  return sql<FeedRow>`
    select c.tx, c.n, u.k, (extract(epoch from c.at) * 1000000)::bigint as at_us, e.*, t.job_id, t.correlation_id, t.traceparent
      from pawl.change c
     cross join unnest(c.ids, c.seqs) with ordinality as u (id, seq, k)
     cross join lateral ${entityOfEntry} as t
     cross join lateral pawl.event_of(t.id, t.history, u.seq) as e
     where u.seq <= cardinality(t.history)
       and (c.tx, c.n) >= (${after.tx}::bigint, ${after.n}::bigint)
       and (c.tx, c.n) <= (${until.tx}::bigint, ${until.n}::bigint)
       and (c.tx, c.n, u.k) > (${after.tx}::bigint, ${after.n}::bigint, ${after.k}::bigint)
       and (c.tx, c.n, u.k) <= (${until.tx}::bigint, ${until.n}::bigint, ${until.k}::bigint)
       and (${jobId}::uuid is null or t.job_id = ${jobId}::uuid)
       and (cardinality(${types}::text[]) = 0 or e.type = any(${types}::text[]))
       and (${since}::timestamptz is null or e.ts >= ${since}::timestamptz)
       and (${latest}::timestamptz is null or date_trunc('milliseconds', e.ts) <= ${latest}::timestamptz)
     order by c.tx, c.n, u.k`
}

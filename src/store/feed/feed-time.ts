import type { Sql } from '../driver/sql.ts'
import { type Position, recordedWithinSeconds, start } from './feed.ts'

/**
 * Finds a position before all events of this moment or later, by bisection over the feed's index. The cost does not
 * depend on the length of the feed.
 */
export async function findPositionBefore(sql: Sql, moment: Date): Promise<Position> {
  // Changes are recorded with the database's own clock, which tests do not move.
  const [ends] = await sql<{ first: number | null; last: number; before: Date }>`
    select (select tx from pawl.change order by tx, n limit 1) as first,
           (select tx from pawl.change order by tx desc, n desc limit 1) as last,
           ${moment}::timestamptz - (pawl.clock() - now())
             - make_interval(secs => ${recordedWithinSeconds}::float8) as before`
  const { first, last, before } = ends!
  if (first === null) return start
  let low = first
  let high = last + 1
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    const [change] = await sql<{ tx: number; isBefore: boolean }>`
      select tx, at < ${before}::timestamptz as is_before from pawl.change
       where tx >= ${middle}::bigint order by tx, n limit 1`
    if (change?.isBefore === true) low = change.tx
    else high = middle
  }
  // A cursor can name the last change before it, even if nothing after it can be shown yet.
  const [previous] = await sql<Position>`
    select tx, n, cardinality(ids) as k from pawl.change where tx < ${low}::bigint order by tx desc, n desc limit 1`
  return previous ?? start
}

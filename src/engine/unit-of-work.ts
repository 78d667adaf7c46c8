/**
 * The unit of work: a change, its idempotency key, its retries, the caller's transaction or our own, and the work that
 * follows the commit.
 *
 * - In our own transaction, the work in `AfterCommit` is done right after the commit, before the answer.
 * - In a transaction begun by `inOwnTransaction` or `transact`, the inner unit adds to the outer unit's `AfterCommit`.
 * - In a caller's transaction, we do not learn when it commits. The database notifies all processes, including this one
 *   (NOTIFY is part of the transaction); the babysitter does the rest.
 */
import type { Bounds, Sql } from '../store/driver/sql.ts'
import { AfterCommit } from './after-commit.ts'
import type { CallerTransaction, Context } from './context.ts'
import { runAfterCommit } from './jobs/advance-job.ts'
import { type Idempotency, once } from './once.ts'
import { retryWhileLocked } from './retry.ts'

/** The units of work of our open transactions. */
const openUnits = new WeakMap<Sql, AfterCommit>()

/**
 * Runs `work` in the caller's transaction if there is one, else on our own connections, and then does the follow-up
 * work.
 */
export async function unitOfWork<T>(
  context: Context,
  tx: CallerTransaction | undefined,
  work: (sql: Sql, after: AfterCommit) => Promise<T>,
): Promise<T> {
  const sql = context.sqlFor(tx)
  const outer = openUnits.get(sql)
  if (outer !== undefined) return work(sql, outer)
  const after = new AfterCommit()
  const result = await work(sql, after)
  if (!sql.isTransaction) await runAfterCommit(context, after)
  else if (after.queues.size > 0) await context.notifyOnCommit(sql, [...after.queues])
  return result
}

export interface UnitCall extends Idempotency {
  readonly tx?: CallerTransaction
}

/**
 * Runs `work` in a transaction, once per idempotency key. Our own transaction is retried while another one holds a row
 * it needs, and after a deadlock. A repeated request with the same key gets the first answer.
 */
export function transact<T>(
  context: Context,
  call: UnitCall,
  request: unknown,
  work: (tx: Sql, after: AfterCommit) => Promise<T>,
): Promise<T> {
  return unitOfWork(context, call.tx, async (sql, after) => {
    const attempt = async (bounds: Bounds) => {
      const attemptAfter = new AfterCommit()
      const run = (tx: Sql) => {
        openUnits.set(tx, attemptAfter)
        return work(tx, attemptAfter)
      }
      const hasKey = call.idempotencyKey !== undefined
      const result = await (hasKey ? once(sql, call, request, run, bounds) : sql.begin(run, bounds))
      after.add(attemptAfter)
      return result
    }
    return sql.isTransaction ? attempt({}) : retryWhileLocked(context, attempt)
  })
}

/** Runs a caller's code in a transaction of ours. Calls with its handle become part of the unit. */
export async function inOwnTransaction<T>(context: Context, work: (tx: Sql) => Promise<T>, bounds: Bounds): Promise<T> {
  const after = new AfterCommit()
  const result = await context.sql.begin(tx => {
    openUnits.set(tx, after)
    return work(tx)
  }, bounds)
  // The caller's code may have begun a savepoint or written rows itself, and the embedded store sends no notifications.
  if (context.oneConnection) after.addQueues(['*'])
  await runAfterCommit(context, after)
  return result
}

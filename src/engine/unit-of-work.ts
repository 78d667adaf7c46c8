/**
 * The unit of work: a change, its idempotency key, its retries, the caller's transaction or our own, and the work that
 * follows the commit.
 *
 * - In our own transaction, the work in `AfterCommit` is done right after the commit, before the answer.
 * - In a transaction begun by `inOwnTransaction` or `transact`, the inner unit adds to the outer unit's `AfterCommit`.
 * - In a caller's transaction, we do not learn when it commits. The database notifies all processes, including this one
 *   (NOTIFY is part of the transaction); the babysitter does the rest.
 */

import { createHash } from 'node:crypto'
import { writeJson } from '../kernel/json.ts'
import { Problem } from '../kernel/problem.ts'
import type { CallerTransaction } from '../kernel/transactions.ts'
import type { Call } from '../protocol/call-options.ts'
import { type Bounds, isSql, type Sql } from '../store/driver/sql.ts'
import { findResponse, reserveKey, saveResponse } from '../store/tasks/idempotency.ts'
import type { Context } from './context.ts'
import { AfterCommit, runAfterCommit } from './jobs/advance-job.ts'
import { retryWhileLocked } from './retry.ts'

/** Options of a change, besides those that can be sent over HTTP. */
export interface UnitCall extends Call {
  /**
   * Make the change in this transaction: it takes effect when it commits and disappears if it rolls back. From
   * `transaction()`, or of `pg`, postgres.js, Drizzle, Kysely, Knex, Prisma, TypeORM or MikroORM, as it is.
   */
  readonly tx?: CallerTransaction
  /** Owner of the key: two callers may use the same key. Default: a single owner for all callers. */
  readonly holder?: string
  /**
   * Identifies a repeated request if the work depends on more than the request, such as the time. Default: the request.
   */
  readonly asked?: unknown
}

/**
 * Runs a call of the API in the transaction that it names, if any. The use cases see only transactions of the engine: in
 * one of another library, the call runs in a savepoint of its own.
 */
export function joinTransaction<T>(
  context: Context,
  tx: CallerTransaction | undefined,
  work: (tx: Sql | undefined) => Promise<T>,
): Promise<T> {
  return tx === undefined || isSql(tx) ? work(tx) : context.inForeignTransaction(tx, work)
}

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

/**
 * Runs `work` once per key. The key's row is inserted first, in the same transaction: a concurrent request waits for it
 * and then gets the first answer. If the first request fails, the key is free again.
 */
export async function once<T>(
  sql: Sql,
  { idempotencyKey: key, holder = '', asked }: UnitCall,
  request: unknown,
  work: (sql: Sql) => Promise<T>,
  bounds: Bounds = {},
): Promise<T> {
  if (key === undefined) return work(sql)
  const fingerprint = fingerprintOf(asked ?? request)
  return sql.begin(async tx => {
    if (!(await reserveKey(tx, holder, key, fingerprint))) {
      const first = await findResponse<T>(tx, holder, key)
      if (first.request !== fingerprint) throw new Problem('IDEMPOTENCY_MISMATCH', { idempotencyKey: key })
      return first.answer
    }
    const answer = await work(tx)
    await saveResponse(tx, holder, key, answer)
    return answer
  }, bounds)
}

/** Replaces the stored answer of a key with a more complete one. Repeated requests get that one. */
export async function replaceAnswer(
  sql: Sql,
  { idempotencyKey: key, holder = '' }: UnitCall,
  answer: unknown,
): Promise<void> {
  if (key !== undefined) await saveResponse(sql, holder, key, answer)
}

/** The request has not been validated yet and may not even be JSON. */
function fingerprintOf(request: unknown): string {
  const made = writeJson(request)
  if ('error' in made) throw new Problem('PAYLOAD_INVALID', { at: 'request', why: made.error })
  return createHash('sha256').update(made.text).digest('hex')
}

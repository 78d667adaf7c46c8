import { createHash } from 'node:crypto'
import { writeJson } from '../kernel/json.ts'
import { Problem } from '../kernel/problem.ts'
import type { Bounds, Sql } from '../store/driver/sql.ts'
import { findResponse, reserveKey, saveResponse } from '../store/tasks/idempotency.ts'

export interface Idempotency {
  readonly idempotencyKey?: string
  /** Owner of the key: two callers may use the same key. Default: a single owner for all callers. */
  readonly holder?: string
  /**
   * Identifies a repeated request if the work depends on more than the request, such as the time. Default: the request.
   */
  readonly asked?: unknown
}

/**
 * Runs `work` once per key. The key's row is inserted first, in the same transaction: a concurrent request waits for it
 * and then gets the first answer. If the first request fails, the key is free again.
 */
export async function once<T>(
  sql: Sql,
  { idempotencyKey: key, holder = '', asked }: Idempotency,
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
  { idempotencyKey: key, holder = '' }: Idempotency,
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

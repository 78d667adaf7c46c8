import { createHash } from 'node:crypto'
import { writeJson } from '../kernel/json.ts'
import { Problem } from '../kernel/problem.ts'
import type { Bounds, Sql } from '../store/driver/sql.ts'
import { findResponse, reserveKey, saveResponse } from '../store/tasks/idempotency.ts'

export interface Idempotency {
  readonly idempotencyKey?: string
  /** Whose key it is: two callers may use the same one. Default: everyone's. */
  readonly holder?: string
  /** By what a request that is sent again is known, where what is done depends on more, as on the time. Default: that. */
  readonly asked?: unknown
}

/**
 * Does `work` once per key. The key's row is written first, in the transaction of the work: whoever comes second
 * waits for it, and then gets the first answer; if the first failed, the key is free again.
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

/** What was asked under a key has been answered more fully since it was taken: whoever asks again has this answer. */
export async function keepFuller(
  sql: Sql,
  { idempotencyKey: key, holder = '' }: Idempotency,
  answer: unknown,
): Promise<void> {
  if (key !== undefined) await saveResponse(sql, holder, key, answer)
}

/** Of whatever was asked, before it was looked at: it may not even be JSON. */
function fingerprintOf(request: unknown): string {
  const made = writeJson(request)
  if ('fault' in made) throw new Problem('PAYLOAD_INVALID', { at: 'request', why: made.fault })
  return createHash('sha256').update(made.text).digest('hex')
}

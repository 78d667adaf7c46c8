/**
 * Input is validated before anything is written: options against a table of fields, JSON against what PostgreSQL can
 * store.
 */

import { whyNotStorable, writeJson } from '../kernel/json.ts'
import { Problem, type ProblemCode } from '../kernel/problem.ts'
import { isId } from '../schema/fields.ts'
import type { PageRow } from '../store/driver/paging.ts'

export * from '../schema/check.ts'
export { isId }

export function checkId(id: unknown, problem: ProblemCode = 'TASK_NOT_FOUND'): string {
  if (!isId(id)) throw new Problem(problem, { id: typeof id === 'string' ? id.slice(0, 100) : typeof id })
  return id.toLowerCase()
}

/** Returns the value as JSON text. Throws a problem with the reason if PostgreSQL cannot store it. */
export function checkedJson(value: unknown, maxBytes: number, where: string): string {
  const made = writeJson(value)
  if ('error' in made) throw new Problem('PAYLOAD_INVALID', { at: where, why: made.error })
  const { text } = made
  if (text.length > maxBytes || Buffer.byteLength(text) > maxBytes) {
    throw new Problem('PAYLOAD_TOO_LARGE', { at: where, bytes: Buffer.byteLength(text), limit: maxBytes })
  }
  const why = whyNotStorable(text)
  if (why !== undefined) throw new Problem('PAYLOAD_INVALID', { at: where, why })
  return text
}

/** Page cursors. A cursor encodes a position and is opaque to clients. */

export function encode(position: object): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url')
}

export function decode<T>(cursor: string, field: keyof T): T {
  try {
    const text = Buffer.from(cursor, 'base64url').toString()
    const position: T = JSON.parse(text)
    if (position[field] !== undefined && whyNotStorable(text) === undefined) return position
  } catch {
    // Falls through to the same problem.
  }
  throw new Problem('CURSOR_INVALID', { cursor })
}

/** Returns the cursor behind the last row, or null on the last page. */
export function nextCursor<Row>(rows: readonly PageRow<Row>[], positionOf: (row: Row) => object): string | null {
  const last = rows.at(-1)
  return last?.more ? encode(positionOf(last)) : null
}

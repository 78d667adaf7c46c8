/** Page cursors. A cursor encodes a position and is opaque to clients. */
import { Problem } from '../kernel/problem.ts'

export function encode(position: object): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url')
}

export function decode<T>(cursor: string, field: keyof T): T {
  try {
    const position: T = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (position[field] !== undefined) return position
  } catch {
    // Falls through to the same problem.
  }
  throw new Problem('CURSOR_INVALID', { cursor })
}

/** Names come from buckets and payloads, and may be anything; what they become here never leaves its folder. */
import { join } from 'node:path'
import { GiveUp } from '../worker/errors.ts'

const longestPart = 255

/** Where a path lies below a folder. One that cannot lie there is a failure that no retry helps, and is named. */
export function placeIn(folder: string, path: string): string {
  for (const part of path.split('/')) {
    const fault = faultOf(part)
    if (fault !== undefined) throw new GiveUp(`The input ${shown(path)} cannot be a file here: ${fault}.`)
  }
  return join(folder, path)
}

function faultOf(part: string): string | undefined {
  if (part === '') return 'a part of its name is empty'
  if (part === '.' || part === '..') return `it has a part "${part}"`
  if (part.includes('\0')) return 'it holds a NUL'
  if (!part.isWellFormed()) return 'it holds half of a character'
  return Buffer.byteLength(part) > longestPart ? `a part of it is longer than ${longestPart} bytes` : undefined
}

/** A name in a message: quoted, with what cannot be seen made visible, and not without end. */
export function shown(name: string): string {
  const text = JSON.stringify(name)
  return text.length > 300 ? `${text.slice(0, 300)}…"` : text
}

/** A path as the rest of a URI. */
export function encodePath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/')
}

/**
 * Names of files come from strangers: a bucket may hold any. What is taken over is a path that means the same
 * everywhere, and never leaves the folder it is put in; everything else is refused by its name.
 */
import { stagingFolder } from '../kernel/datum.ts'
import { Problem } from '../kernel/problem.ts'

/** Refuses a path that cannot be kept by every store. A folder's path ends in `/`; '' is the folder itself. */
export function checkPath(path: string): void {
  const why = pathError(path)
  if (why !== undefined) throw new Problem('NAME_REFUSED', { name: path.toWellFormed(), why })
}

/** The same, for a path that becomes one of files on this machine: their names are shorter. */
export function checkLocalPath(path: string): void {
  checkPath(path)
  if (path.split('/').some(part => Buffer.byteLength(part) > 255))
    throw new Problem('NAME_REFUSED', { name: path, why: 'a part of it has more than 255 bytes' })
}

/** What is wrong with a path, if anything is. */
export function pathError(path: string): string | undefined {
  if (path === '') return undefined
  if (!path.isWellFormed()) return 'it is not Unicode'
  if (path.includes('\0')) return 'it holds a NUL'
  if (path.startsWith('/')) return 'it begins with /'
  const parts = (path.endsWith('/') ? path.slice(0, -1) : path).split('/')
  if (parts.includes('')) return 'it has an empty part: two / in a row'
  return parts.includes('.') || parts.includes('..') ? 'it has a part that is . or ..' : undefined
}

/** The bytes of a name as text, or a refusal that shows them. */
export function nameOf(bytes: Uint8Array): string {
  try {
    return strict.decode(bytes)
  } catch (cause) {
    const name = Buffer.from(bytes)
      .toString('latin1')
      .replace(/[^ -~]/g, escaped)
    throw new Problem('NAME_REFUSED', { name, why: 'its bytes are not UTF-8' }, cause)
  }
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const escaped = (char: string) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`

/** Files that are being written begin with this. */
export const unfinished = '.pawl-unfinished-'

/** What listings do not show, at any depth: uploads whose attempt has not won, and files that are being written. */
export function isHidden(path: string): boolean {
  return `/${path}`.includes(`/${stagingFolder}`) || `/${path}`.includes(`/${unfinished}`)
}

/** In the order of their bytes in UTF-8, which S3 lists in. That of JavaScript differs beyond the 16-bit characters. */
export function byBytes(one: string, other: string): number {
  const length = Math.min(one.length, other.length)
  for (let at = 0; at < length; at += 1) {
    const [left, right] = [one.charCodeAt(at), other.charCodeAt(at)]
    if (left !== right) return rank(left) - rank(right)
  }
  return one.length - other.length
}

/** A half of a long character is a smaller number than some short ones, whose bytes come before. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit
}

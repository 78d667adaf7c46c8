/**
 * Checks file names, which are untrusted: a bucket may hold any name. Only paths are accepted that mean the same in
 * every store and never leave their folder. All others are rejected by name.
 */
import { stagingFolder } from '../kernel/datum.ts'
import { Problem } from '../kernel/problem.ts'

/** Rejects a path that some store cannot hold. Folder paths end in `/`; '' is the folder itself. */
export function checkPath(path: string): void {
  const why = pathError(path)
  if (why !== undefined) throw new Problem('NAME_REFUSED', { name: path.toWellFormed(), why })
}

/** Like `checkPath`, for a path that becomes a local file, whose names are shorter. */
export function checkLocalPath(path: string): void {
  checkPath(path)
  if (path.split('/').some(part => Buffer.byteLength(part) > 255))
    throw new Problem('NAME_REFUSED', { name: path, why: 'a part of it has more than 255 bytes' })
}

/** Returns why a path is invalid, or undefined. */
export function pathError(path: string): string | undefined {
  if (path === '') return undefined
  if (!path.isWellFormed()) return 'it is not valid Unicode'
  if (path.includes('\0')) return 'it contains a NUL'
  if (path.startsWith('/')) return 'it begins with /'
  const parts = (path.endsWith('/') ? path.slice(0, -1) : path).split('/')
  if (parts.includes('')) return 'it has an empty part: two / in a row'
  return parts.includes('.') || parts.includes('..') ? 'it has a part that is . or ..' : undefined
}

/** Decodes a name as UTF-8. Rejects other names and shows their bytes. */
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

/** Prefix of files that are being written. */
export const unfinished = '.pawl-unfinished-'

/** Whether listings hide the path, at any depth: uploads of attempts that have not won, and files being written. */
export function isHidden(path: string): boolean {
  return `/${path}`.includes(`/${stagingFolder}`) || `/${path}`.includes(`/${unfinished}`)
}

/** Compares by the UTF-8 bytes, as S3 sorts its listings. JavaScript's order differs beyond the 16-bit characters. */
export function byBytes(one: string, other: string): number {
  const length = Math.min(one.length, other.length)
  for (let at = 0; at < length; at += 1) {
    const [left, right] = [one.charCodeAt(at), other.charCodeAt(at)]
    if (left !== right) return rank(left) - rank(right)
  }
  return one.length - other.length
}

/** Surrogates are smaller than some 16-bit characters whose bytes sort before them. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit
}

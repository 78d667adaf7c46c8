/**
 * URIs of files and folders (RFC 3986). Special characters are written as %XX, so that any name has a URI that gives
 * the same name back. Spaces and letters of all scripts may be written as they are; URIs made by Pawl encode them.
 */

import { stagingFolder } from '../kernel/datum.ts'
import { Problem } from '../kernel/problem.ts'

export interface Place {
  readonly scheme: 'file' | 's3'
  /** '' for `file`. */
  readonly bucket: string
  /** Relative to the root of the machine or the bucket, without a leading `/`. Folders end in `/` or are ''. */
  readonly path: string
}

export function parseUri(uri: string): Place {
  const refuse = (why: string): never => {
    throw new Problem('URI_INVALID', { uri, why })
  }
  const match = /^([a-zA-Z][a-zA-Z0-9+.-]*):\/\/([^/]*)(\/.*)?$/s.exec(uri)
  if (match === null) return refuse('it has no scheme')
  const [, scheme, host = '', rest] = match
  if (scheme !== 'file' && scheme !== 's3') return refuse(`${scheme}:// is not supported`)
  if (scheme === 'file' && host.startsWith('.')) return refuse('relative paths are not supported')
  if (scheme === 'file' && host !== '' && host !== 'localhost')
    return refuse('files on other machines are not supported')
  if (scheme === 's3' && host === '') return refuse('it names no bucket')
  if (scheme === 's3' && !/^[a-zA-Z0-9][a-zA-Z0-9._-]{1,254}$/.test(host))
    return refuse('this is not a valid bucket name')
  if (rest === undefined) return refuse(`it has no path; write ${uri}/ for the whole bucket`)
  if (/[#?]/.test(rest)) return refuse('it contains a # or a ?')
  if (/%2f/i.test(rest)) return refuse('it contains %2F, but names cannot contain a /')
  const path =
    decoded(rest.slice(1)) ??
    refuse('a % must be followed by two hexadecimal digits, and the bytes must be valid UTF-8')
  const error = pathError(path)
  if (error !== undefined) return refuse(error)
  return { scheme, bucket: scheme === 's3' ? host : '', path }
}

export function uriOf({ scheme, bucket, path }: Place): string {
  return `${scheme}://${bucket}/${encodePath(path)}`
}

/** Encodes the parts of a path, but not the `/` between them. */
export function encodePath(path: string): string {
  return path.split('/').map(encodePart).join('/')
}

export function isFolder(uri: string): boolean {
  return uri.endsWith('/')
}

/** The URI of a path in a folder. */
export function joinUri(folder: string, path: string): string {
  checkPath(path)
  return `${checkFolder(folder)}${encodePath(path)}`
}

/** The parent folder of a file or folder, or undefined for a root. */
export function parentOf(uri: string): string | undefined {
  const { path, ...place } = parseUri(uri)
  if (path === '') return undefined
  return uriOf({ ...place, path: path.slice(0, path.lastIndexOf('/', path.length - 2) + 1) })
}

/** The path of a URI within a folder; the inverse of `joinUri`. Undefined if it is not in that folder. */
export function pathIn(folder: string, uri: string): string | undefined {
  const [whole, inner] = [parseUri(checkFolder(folder)), parseUri(uri)]
  const isInside = whole.scheme === inner.scheme && whole.bucket === inner.bucket && inner.path.startsWith(whole.path)
  return isInside ? inner.path.slice(whole.path.length) : undefined
}

/** Returns the URI as Pawl would write it. Rejects files. */
export function checkFolder(uri: string): string {
  const place = parseUri(uri)
  if (!isFolder(uri)) throw new Problem('URI_INVALID', { uri, why: 'it is not a folder, because it does not end in /' })
  return uriOf(place)
}

/** Returns the place of a file. Rejects folders. */
export function placeOfFile(uri: string): Place {
  const place = parseUri(uri)
  if (isFolder(uri)) throw new Problem('URI_INVALID', { uri, why: 'it is a folder, because it ends in /' })
  return place
}

function encodePart(part: string): string {
  return encodeURIComponent(part).replace(/[!'()*]/g, char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/**
 * Rejects a path that some store cannot hold. Names are untrusted, because a bucket may hold any name. Only paths are
 * accepted that mean the same in every store and never leave their folder. Folders end in `/`; '' is the folder itself.
 */
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

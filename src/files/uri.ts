/**
 * URIs of files and folders (RFC 3986). Special characters are written as %XX, so that any name has a URI that gives
 * the same name back. Spaces and letters of all scripts may be written as they are; URIs made by Pawl encode them.
 */
import { Problem } from '../kernel/problem.ts'
import { checkPath, pathError } from './names.ts'

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

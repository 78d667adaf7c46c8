/** Reads from S3: lists folders and downloads objects. */
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import {
  GetObjectCommand,
  type GetObjectCommandOutput,
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
} from '@aws-sdk/client-s3'
import { Problem } from '../kernel/problem.ts'
import type { Entry, ListAsk } from './file-store.ts'
import { type S3Connection, s3Problem, targetOf } from './s3-client.ts'
import { byBytes, checkPath, isHidden, nameOf, parseUri } from './uri.ts'

/** Lists any number of pages. Keys are requested URL-encoded, because XML cannot represent some characters. */
export async function* listS3(connection: S3Connection, folder: string, { after = '', deep = false }: ListAsk) {
  const { bucket, path: prefix } = parseUri(folder)
  const showsHidden = isHidden(prefix)
  let last = after
  let token: string | undefined
  do {
    const command = new ListObjectsV2Command({
      Bucket: bucket,
      EncodingType: 'url',
      MaxKeys: connection.settings.pageSize,
      ...(prefix !== '' && { Prefix: prefix }),
      ...(!deep && { Delimiter: '/' }),
      ...(token === undefined ? after !== '' && { StartAfter: prefix + after } : { ContinuationToken: token }),
    })
    const page = await connection.ask(folder, client => client.send(command))
    const found = entriesOf(page, prefix).filter(({ path }) => byBytes(path, after) > 0 && path !== last)
    if (found[0] !== undefined && byBytes(found[0].path, last) < 0)
      throw new Problem('FILES_UNORDERED', { uri: folder, name: found[0].path, behind: last })
    last = found.at(-1)?.path ?? last
    const entries = found.filter(({ path }) => showsHidden || !isHidden(path)).filter(isShown)
    if (entries.length > 0) yield entries
    token = page.IsTruncated ? nextOf(page, folder, token) : undefined
  } while (token !== undefined)
}

/** Sorts them, because a page lists keys and prefixes separately. */
function entriesOf(page: ListObjectsV2CommandOutput, prefix: string): Entry[] {
  const pathOf = (key: string) => (page.EncodingType === 'url' ? decoded(key) : key).slice(prefix.length)
  const files = (page.Contents ?? []).map(({ Key = '', Size = 0, ETag = '' }) => ({
    path: pathOf(Key),
    size: Size,
    version: ETag.replaceAll('"', ''),
  }))
  const folders = (page.CommonPrefixes ?? []).map(({ Prefix = '' }) => ({ path: pathOf(Prefix) }))
  return [...files, ...folders].sort((one, other) => byBytes(one.path, other.path))
}

/** Hides empty objects whose names end in `/`. Some programs create them as folders; they are not files. */
function isShown({ path, size }: Entry): boolean {
  if (path === '' || (path.endsWith('/') && size === 0)) return false
  if (size !== undefined && path.endsWith('/'))
    throw new Problem('NAME_REFUSED', { name: path, why: 'it ends in / like a folder, but it has content' })
  checkPath(path)
  return true
}

/** Decodes form encoding, in which `+` is a space. */
function decoded(key: string): string {
  const bytes = Buffer.from(
    key.replaceAll('+', '%20').replace(/%([0-9a-f]{2})/gi, (_, hex) => byteOf(hex)),
    'latin1',
  )
  return nameOf(bytes)
}

function byteOf(hex: string): string {
  return String.fromCharCode(Number.parseInt(hex, 16))
}

/** Guards against a server that returns the same page forever. */
function nextOf({ NextContinuationToken: next }: ListObjectsV2CommandOutput, uri: string, token?: string): string {
  if (next !== undefined && next !== token) return next
  throw new Problem('FILES_UNAVAILABLE', { uri, why: 'the listing is incomplete, and has no valid continuation token' })
}

/** Downloads an object. If the connection breaks, the rest is requested again. */
export async function openObject(connection: S3Connection, uri: string, signal?: AbortSignal): Promise<Readable> {
  const closed = new AbortController()
  const stop = AbortSignal.any([closed.signal, ...(signal ? [signal] : [])])
  const get = (more: { Range?: string; IfMatch?: string } = {}) =>
    connection.ask(
      uri,
      (client, options) => client.send(new GetObjectCommand({ ...targetOf(uri), ...more }), options),
      stop,
    )
  const first = await get()
  const bytes = bytesOf(first, uri, connection.settings.tries, stop, get)
  return Readable.from(bytes, { objectMode: false }).once('close', () => closed.abort())
}

/** Reads a single version of the object (IfMatch) and verifies its SHA-256, if that is known. */
async function* bytesOf(
  first: GetObjectCommandOutput,
  uri: string,
  tries: number,
  stop: AbortSignal,
  get: (more: { Range: string; IfMatch?: string }) => Promise<GetObjectCommandOutput>,
): AsyncGenerator<Buffer> {
  const { ETag, ContentLength: size, Metadata: { sha256 } = {} } = first
  const hash = createHash('sha256')
  let at = 0
  let fruitless = 0
  for (let body = first.Body as Readable; ; ) {
    try {
      for await (const chunk of body) {
        at += chunk.length
        fruitless = 0
        if (sha256 !== undefined) hash.update(chunk)
        yield chunk
      }
      if (size === undefined || at >= size) break
      throw new Error(`it ends after ${at} of ${size} bytes`)
    } catch (error) {
      if (stop.aborted || ++fruitless >= tries) throw s3Problem(error, uri, stop)
    } finally {
      body.destroy()
    }
    body = (await get({ Range: `bytes=${at}-`, ...(ETag !== undefined && { IfMatch: ETag }) })).Body as Readable
  }
  if (sha256 !== undefined && hash.digest('hex') !== sha256)
    throw new Problem('FILES_UNAVAILABLE', { uri, why: 'its content does not match its SHA-256' })
}

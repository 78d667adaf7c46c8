import { ListObjectsV2Command, type ListObjectsV2CommandOutput } from '@aws-sdk/client-s3'
import { Problem } from '../kernel/problem.ts'
import type { Entry, ListAsk } from './file-store.ts'
import { byBytes, checkPath, isHidden, nameOf } from './names.ts'
import type { S3Connection } from './s3-client.ts'
import { parseUri } from './uri.ts'

/** Any number of pages. Keys come escaped, since XML has no way to write some characters. */
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

/** In order: a page holds keys and prefixes apart. */
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

/** Empty objects whose names end in `/` are how some programs make folders; they are no files. */
function isShown({ path, size }: Entry): boolean {
  if (path === '' || (path.endsWith('/') && size === 0)) return false
  if (size !== undefined && path.endsWith('/'))
    throw new Problem('NAME_REFUSED', { name: path, why: 'it ends in / and has bytes: a folder cannot' })
  checkPath(path)
  return true
}

/** As in forms: a space may be a `+`. */
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

/** A server that gives the same page for ever would keep us for ever. */
function nextOf({ NextContinuationToken: next }: ListObjectsV2CommandOutput, uri: string, token?: string): string {
  if (next !== undefined && next !== token) return next
  throw new Problem('FILES_UNAVAILABLE', { uri, why: 'its listing is not whole, and it does not say how to go on' })
}

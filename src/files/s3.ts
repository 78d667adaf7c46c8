/**
 * `s3://`: any S3-compatible server. The server replaces an object atomically. The SHA-256 of a file is kept in its
 * metadata: immediately if the file is sent in one request, and after its promotion if it is sent in parts, because it
 * is known only at the end. The signature of every request covers the SHA-256 of its body.
 */
import { createHash } from 'node:crypto'
import { stat as statFile } from 'node:fs/promises'
import {
  CopyObjectCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  HeadObjectCommand,
  PutObjectCommand,
  UploadPartCommand,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3'
import { Problem } from '../kernel/problem.ts'
import type { FileStore, Kept, Stat } from './file-store.ts'
import { withFileErrors } from './local-problem.ts'
import { chunksOf } from './read-file.ts'
import { openS3Connection, type S3Connection } from './s3-client.ts'
import { listS3 } from './s3-list.ts'
import { openObject } from './s3-open.ts'
import type { S3Options } from './s3-options.ts'
import { mostParts, options, type SendPart, sendInParts, type Target } from './s3-parts.ts'
import { s3Problem } from './s3-problem.ts'
import { checkFolder, encodePath, placeOfFile, uriOf } from './uri.ts'

export function openS3Files(s3Options: S3Options): FileStore {
  const connection = openS3Connection(s3Options)
  return {
    async *list(folder, ask = {}) {
      yield* listS3(connection, checkFolder(folder), ask)
    },
    open: (uri, signal) => openObject(connection, uri, signal),
    put: (path, uri, signal) => put(connection, path, uri, signal),
    promote: (staged, uri, kept) => promote(connection, staged, uri, kept),
    stat: uri => stat(connection, uri),
    remove: uris => removeObjects(connection, uris),
    close: async () => connection.close(),
  }
}

/** Bucket and key of a URI. */
export function targetOf(uri: string): Target {
  const { bucket, path } = placeOfFile(uri)
  if (Buffer.byteLength(path) > 1024)
    throw new Problem('NAME_REFUSED', { name: path, why: 'it has more than 1024 bytes, the limit of S3' })
  return { Bucket: bucket, Key: path }
}

async function put(connection: S3Connection, path: string, uri: string, signal?: AbortSignal): Promise<Kept> {
  const target = targetOf(uri)
  const { size: expected } = await withFileErrors(path, () => statFile(path))
  const partBytes = Math.max(connection.settings.partBytes, Math.ceil(expected / (mostParts - 1)))
  const chunks = chunksOf(path, partBytes, signal)
  const hash = createHash('sha256')
  let size = 0
  const first = await chunks.next()
  const begin = first.done ? Buffer.alloc(0) : take(first.value)

  function take(chunk: Buffer): Buffer {
    hash.update(chunk)
    size += chunk.length
    return chunk
  }
  async function* parts(): AsyncGenerator<SendPart> {
    yield partFrom(begin)
    for await (const chunk of chunks) yield partFrom(take(chunk))
  }
  const partFrom =
    (Body: Buffer): SendPart =>
    (part, stopped) =>
      connection.ask(
        uri,
        async client => (await client.send(new UploadPartCommand({ ...part, Body }), options(stopped))).ETag,
        stopped,
      )

  if (begin.length < partBytes) {
    await chunks.return(undefined)
    const Metadata = { sha256: hash.copy().digest('hex') }
    await connection.ask(
      uri,
      client => client.send(new PutObjectCommand({ ...target, Body: begin, Metadata }), options(signal)),
      signal,
    )
  } else await connection.ask(uri, client => sendInParts(client, target, parts(), signal), signal)
  return { size, sha256: hash.digest('hex') }
}

/** The server copies the object. Two copies at once write the same bytes, so either may win. */
async function promote(connection: S3Connection, staged: string, uri: string, { size, sha256 }: Kept): Promise<void> {
  const [from, target] = [targetOf(staged), targetOf(uri)]
  const CopySource = `${from.Bucket}/${encodePath(from.Key)}`
  const Metadata = { sha256 }
  const { copyBytes } = connection.settings

  async function* parts(): AsyncGenerator<SendPart> {
    for (let at = 0; at < size; at += copyBytes) {
      const CopySourceRange = `bytes=${at}-${Math.min(at + copyBytes, size) - 1}`
      yield async (part, stopped) => {
        const copy = new UploadPartCopyCommand({ ...part, CopySource, CopySourceRange })
        return connection.ask(
          staged,
          async client => (await client.send(copy, options(stopped))).CopyPartResult?.ETag,
          stopped,
        )
      }
    }
  }
  const copy = new CopyObjectCommand({ ...target, CopySource, Metadata, MetadataDirective: 'REPLACE' })
  try {
    await connection.ask(staged, async client => {
      if (size > copyBytes) await sendInParts(client, { ...target, Metadata }, parts())
      else await client.send(copy)
    })
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'FILE_NOT_FOUND') throw error
    const there = await stat(connection, uri)
    if (there?.size !== size || there.sha256 !== sha256) throw error
  }
}

async function stat(connection: S3Connection, uri: string): Promise<Stat | undefined> {
  try {
    const head = await connection.ask(uri, client => client.send(new HeadObjectCommand(targetOf(uri))))
    const sha256 = head.Metadata?.sha256
    const version = (head.ETag ?? '').replaceAll('"', '')
    return { size: head.ContentLength ?? 0, version, ...(sha256 !== undefined && { sha256 }) }
  } catch (error) {
    if (error instanceof Problem && error.code === 'FILE_NOT_FOUND') return undefined
    throw error
  }
}

const atOnce = 1000

/** Removes many objects per request, bucket by bucket. Keys that XML cannot represent are removed one by one. */
async function removeObjects(connection: S3Connection, uris: readonly string[]): Promise<void> {
  const plain = new Map<string, string[]>()
  for (const uri of uris) {
    const { Bucket, Key } = targetOf(uri)
    if (isPlain(Key))
      plain
        .set(Bucket, plain.get(Bucket) ?? [])
        .get(Bucket)!
        .push(Key)
    else await connection.ask(uri, client => client.send(new DeleteObjectCommand({ Bucket, Key })))
  }
  for (const [bucket, keys] of plain) {
    for (let at = 0; at < keys.length; at += atOnce) await removeMany(connection, bucket, keys.slice(at, at + atOnce))
  }
}

async function removeMany(connection: S3Connection, Bucket: string, keys: readonly string[]): Promise<void> {
  const Delete = { Quiet: true, Objects: keys.map(Key => ({ Key })) }
  const uri = uriOf({ scheme: 's3', bucket: Bucket, path: keys[0]! })
  const { Errors = [] } = await connection.ask(uri, client => client.send(new DeleteObjectsCommand({ Bucket, Delete })))
  const left = Errors.find(({ Code }) => Code !== 'NoSuchKey')
  if (left === undefined) return
  const error = Object.assign(new Error(left.Message ?? ''), { name: left.Code ?? 'Error' })
  throw s3Problem(error, uriOf({ scheme: 's3', bucket: Bucket, path: left.Key ?? keys[0]! }))
}

function isPlain(key: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what XML cannot write
  return !/[\u0000-\u001f\u007f-\u009f\ufffe\uffff]/.test(key) && key.trim() === key
}

/**
 * `s3://`: any S3-compatible server. The server replaces an object atomically. The SHA-256 of a file is kept in its
 * metadata: immediately if the file is sent in one request, and after its promotion if it is sent in parts, because it
 * is known only at the end. The signature of every request covers the SHA-256 of its body.
 */
import { createHash, randomUUID } from 'node:crypto'
import { stat as statFile } from 'node:fs/promises'
import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  HeadObjectCommand,
  NoSuchUpload,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3'
import { Problem } from '../kernel/problem.ts'
import type { FileStore, Kept, S3Options, Stat } from './file-store.ts'
import { chunksOf, withFileErrors } from './local-file.ts'
import {
  openS3Connection,
  type RequestOptions,
  type S3Connection,
  s3Problem,
  type Target,
  targetOf,
} from './s3-client.ts'
import { listS3, openObject } from './s3-read.ts'
import { checkFolder, encodePath, uriOf } from './uri.ts'

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
    (part, stopped) => {
      const upload = new UploadPartCommand({ ...part, Body })
      return connection.ask(uri, async (client, options) => (await client.send(upload, options)).ETag, stopped)
    }

  if (begin.length < partBytes) {
    await chunks.return(undefined)
    const Metadata = { sha256: hash.copy().digest('hex') }
    const whole = new PutObjectCommand({ ...target, Body: begin, Metadata })
    await connection.ask(uri, (client, options) => client.send(whole, options), signal)
  } else await sendInParts(connection, uri, target, parts(), signal)
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
        const send = (client: S3Client, options: RequestOptions) => client.send(copy, options)
        return (await connection.ask(staged, send, stopped)).CopyPartResult?.ETag
      }
    }
  }
  const copy = new CopyObjectCommand({ ...target, CopySource, Metadata, MetadataDirective: 'REPLACE' })
  try {
    if (size > copyBytes) await sendInParts(connection, staged, { ...target, Metadata }, parts())
    else await connection.ask(staged, client => client.send(copy))
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

/** Sends one part of a multipart upload and returns its ETag. */
type SendPart = (
  part: Target & { readonly UploadId: string; readonly PartNumber: number },
  signal: AbortSignal,
) => Promise<string | undefined>

const mostParts = 10_000
const partsAtOnce = 4

/**
 * A multipart upload: the object appears completely when all parts are there, or never. Requests the next part when
 * there is room for it, so that at most four are in memory. The first failure stops the others and discards the upload.
 * A process that is killed leaves its parts in the bucket: a lifecycle rule for incomplete uploads removes them.
 *
 * Each request is tried again by itself, never the upload as a whole: its parts are read only once.
 */
async function sendInParts(
  connection: S3Connection,
  uri: string,
  { Bucket, Key, Metadata }: Target,
  parts: AsyncIterable<SendPart>,
  signal?: AbortSignal,
): Promise<void> {
  const mark = randomUUID()
  const target = { Bucket, Key }
  const create = new CreateMultipartUploadCommand({ ...target, Metadata: { ...Metadata, 'pawl-upload': mark } })
  const { UploadId = '' } = await connection.ask(uri, (client, options) => client.send(create, options), signal)
  const stop = new AbortController()
  const stopped = AbortSignal.any([stop.signal, ...(signal ? [signal] : [])])
  const running = new Set<Promise<void>>()
  try {
    const done: CompletedPart[] = []
    let count = 0
    for await (const send of parts) {
      const PartNumber = ++count
      const sent = send({ ...target, UploadId, PartNumber }, stopped).then(ETag => {
        done.push({ PartNumber, ETag })
        running.delete(sent)
      })
      sent.catch(() => {})
      running.add(sent)
      if (running.size >= partsAtOnce) await Promise.race(running)
    }
    await Promise.all(running)
    const MultipartUpload = { Parts: done.sort((one, other) => one.PartNumber! - other.PartNumber!) }
    const complete = new CompleteMultipartUploadCommand({ ...target, UploadId, MultipartUpload })
    const finish = (client: S3Client, options: RequestOptions) =>
      client.send(complete, options).catch(error => forgive(client, target, mark, error))
    await connection.ask(uri, finish, signal)
  } catch (error) {
    stop.abort()
    await Promise.allSettled(running)
    const abort = new AbortMultipartUploadCommand({ ...target, UploadId })
    await connection.ask(uri, client => client.send(abort)).catch(() => {})
    throw error
  }
}

/**
 * The upload may have been completed although the answer was lost: the server then no longer knows the upload. A marker
 * in the metadata shows whether the object is ours.
 */
async function forgive(client: S3Client, target: Target, mark: string, error: unknown): Promise<void> {
  if (!(error instanceof NoSuchUpload)) throw error
  const head = await client.send(new HeadObjectCommand(target))
  if (head.Metadata?.['pawl-upload'] !== mark) throw error
}

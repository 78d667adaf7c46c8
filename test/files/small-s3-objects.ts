/** The contents of a small S3: objects are lists of slices of files on disk, so that a copy costs nothing. */
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'

export interface Slice {
  /** Undefined if the bytes were discarded; they are read as zeros. */
  readonly file: string | undefined
  readonly start: number
  readonly size: number
}

export interface Blob {
  readonly slices: readonly Slice[]
  readonly size: number
  readonly md5: string
}

export interface StoredObject extends Blob {
  readonly etag: string
  readonly metadata: Readonly<Record<string, string>>
}

export interface Upload {
  readonly bucket: string
  readonly key: string
  readonly metadata: Readonly<Record<string, string>>
  readonly parts: Map<number, Blob>
}

/** The bytes of a key as Latin-1: any bytes are a valid key, and strings sort like the bytes. */
export type Bucket = Map<string, StoredObject>

export class S3Error extends Error {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string) {
    super(code)
    this.status = status
    this.code = code
  }
}

/** Writes a body to disk, or discards it, and verifies it against the signed SHA-256. */
export async function receive(request: IncomingMessage, folder: string, keepsBytes: boolean): Promise<Blob> {
  const file = keepsBytes ? join(folder, randomUUID()) : undefined
  const out = file === undefined ? undefined : createWriteStream(file)
  const [md5, sha256] = [createHash('md5'), createHash('sha256')]
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    md5.update(chunk)
    sha256.update(chunk)
    size += chunk.length
    if (out?.write(chunk) === false) await once(out, 'drain')
  }
  if (out !== undefined) {
    out.end()
    await once(out, 'close')
  }
  const signed = String(request.headers['x-amz-content-sha256'] ?? '')
  if (/^[0-9a-f]{64}$/.test(signed) && signed !== sha256.digest('hex'))
    throw new S3Error(400, 'XAmzContentSHA256Mismatch')
  return { slices: [{ file, start: 0, size }], size, md5: md5.digest('hex') }
}

export function objectOf(blob: Blob, metadata: Readonly<Record<string, string>>): StoredObject {
  return { ...blob, etag: `"${blob.md5}"`, metadata }
}

/** Joins the parts, in order, to one object. */
export function joined(parts: readonly Blob[], metadata: Readonly<Record<string, string>>): StoredObject {
  const md5 = createHash('md5')
  for (const part of parts) md5.update(part.md5, 'hex')
  const size = parts.reduce((sum, part) => sum + part.size, 0)
  const digest = md5.digest('hex')
  const slices = parts.flatMap(part => part.slices)
  return { slices, size, md5: digest, etag: `"${digest}-${parts.length}"`, metadata }
}

/** Bytes `from` to `to`, both included. */
export function cutOut(slices: readonly Slice[], from: number, to: number): Slice[] {
  let offset = 0
  return slices.flatMap(slice => {
    const begin = Math.max(from - offset, 0)
    const end = Math.min(to - offset + 1, slice.size)
    offset += slice.size
    return begin < end ? [{ file: slice.file, start: slice.start + begin, size: end - begin }] : []
  })
}

export async function* bytesOf(slices: readonly Slice[]): AsyncGenerator<Buffer> {
  for (const { file, start, size } of slices) {
    if (size === 0) continue
    if (file === undefined) {
      for (let left = size; left > 0; left -= 65_536) yield Buffer.alloc(Math.min(left, 65_536))
    } else yield* createReadStream(file, { start, end: start + size - 1 })
  }
}

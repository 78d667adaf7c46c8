/**
 * A small S3 for tests: path style, only the operations that Pawl uses, keys of any bytes, and faults on demand. It
 * does not verify signatures, but checks bodies against the signed SHA-256.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { listXml } from './small-s3-list.ts'
import {
  type Bucket,
  bytesOf,
  cutOut,
  joined,
  objectOf,
  receive,
  S3Error,
  type StoredObject,
  type Upload,
} from './small-s3-objects.ts'

export interface Asked {
  readonly method: string
  readonly bucket: string
  /** The bytes of the key as Latin-1. */
  readonly key: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  /** The access key of the signature. */
  readonly signedBy: string | undefined
}

/**
 * `cut`: closes the connection without a response; `silent`: leaves it open without one; `lose`: does the work and
 * loses the response.
 */
export type Fault = 'cut' | 'silent' | 'lose' | { status: number; code: string } | { cutAfter: number } | { flip: true }

export interface SmallS3 {
  readonly endpoint: string
  readonly buckets: Map<string, Bucket>
  readonly uploads: Map<string, Upload>
  /** All requests, in order. */
  readonly asked: Asked[]
  /** Returns how a request fails, if it does. */
  fault: (asked: Asked) => Fault | undefined
  close(): Promise<void>
}

interface Call extends Asked {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly fault: Fault | undefined
}

export async function startSmallS3({ keepsBytes = true } = {}): Promise<SmallS3> {
  const folder = await mkdtemp(join(tmpdir(), 'small-s3-'))
  const server = createServer((request, response) => void answer(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const s3: SmallS3 = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    buckets: new Map([['bucket', new Map()]]),
    uploads: new Map(),
    asked: [],
    fault: () => undefined,
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
      await rm(folder, { recursive: true, force: true })
    },
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = askedOf(request)
    s3.asked.push(asked)
    const fault = s3.fault(asked)
    try {
      if (fault === 'silent') return
      if (fault === 'cut') return void request.socket.destroy()
      if (typeof fault === 'object' && 'status' in fault) {
        request.resume()
        throw new S3Error(fault.status, fault.code)
      }
      await handle(s3, { ...asked, request, response, fault }, body => receive(body, folder, keepsBytes))
    } catch (error) {
      if (response.headersSent || !(error instanceof S3Error)) return void request.socket.destroy(error as Error)
      const xml = `<Error><Code>${error.code}</Code><Message>${error.code}</Message></Error>`
      response.writeHead(error.status, { 'content-type': 'application/xml' }).end(asked.method === 'HEAD' ? '' : xml)
    }
  }
  return s3
}

function askedOf({ method = '', url = '', headers }: IncomingMessage): Asked {
  const [path = '', query = ''] = url.split('?')
  const [, bucket = '', ...rest] = path.split('/')
  const signedBy = /Credential=([^/]+)/.exec(headers.authorization ?? '')?.[1]
  return { method, bucket, key: latin1(rest.join('/')), query: new URLSearchParams(query), headers, signedBy }
}

function latin1(encoded: string): string {
  return encoded.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
}

type Receive = (request: IncomingMessage) => ReturnType<typeof receive>

async function handle(s3: SmallS3, call: Call, take: Receive): Promise<void> {
  const { method, key, query, headers } = call
  const bucket = s3.buckets.get(call.bucket)
  if (bucket === undefined) throw new S3Error(404, 'NoSuchBucket')
  const uploadId = query.get('uploadId')
  if (method === 'GET' && key === '') return reply(call, listXml(call.bucket, bucket, query))
  if (method === 'POST' && query.has('delete')) return removeMany(call, bucket)
  if (method === 'POST' && query.has('uploads')) return begin(s3, call)
  if (method === 'POST' && uploadId !== null) return complete(s3, call, bucket, uploadId)
  if (method === 'PUT' && uploadId !== null) return putPart(s3, call, uploadId, take)
  if (method === 'PUT' && headers['x-amz-copy-source'] !== undefined) {
    const source = sourceOf(s3, call)
    const metadata = headers['x-amz-metadata-directive'] === 'REPLACE' ? metadataOf(headers) : source.metadata
    bucket.set(key, objectOf(source, metadata))
    return reply(call, `<CopyObjectResult><ETag>"${source.md5}"</ETag></CopyObjectResult>`)
  }
  if (method === 'PUT') {
    checkConditions(call, bucket.get(key))
    const object = objectOf(await take(call.request), metadataOf(headers))
    bucket.set(key, object)
    return reply(call, '', { etag: object.etag })
  }
  if (method === 'DELETE') {
    if (uploadId === null) bucket.delete(key)
    else if (!s3.uploads.delete(uploadId)) throw new S3Error(404, 'NoSuchUpload')
    return reply(call, '', {}, 204)
  }
  if (method === 'GET' || method === 'HEAD') return get(call, bucket.get(key))
  throw new S3Error(501, 'NotImplemented')
}

async function get(call: Call, object: StoredObject | undefined): Promise<void> {
  if (object === undefined) throw new S3Error(404, 'NoSuchKey')
  checkConditions(call, object)
  const range = /^bytes=(\d+)-(\d*)$/.exec(call.headers.range ?? '')
  const from = Number(range?.[1] ?? 0)
  const to = range?.[2] ? Math.min(Number(range[2]), object.size - 1) : object.size - 1
  if (range !== null && from >= object.size) throw new S3Error(416, 'InvalidRange')
  const metadata = Object.entries(object.metadata).map(([name, value]) => [`x-amz-meta-${name}`, value])
  call.response.writeHead(range === null ? 200 : 206, {
    etag: object.etag,
    'content-length': to - from + 1,
    ...Object.fromEntries(metadata),
  })
  if (call.method === 'HEAD') return void call.response.end()
  await pipeline(spoilt(bytesOf(cutOut(object.slices, from, to)), call), call.response).catch(() => {})
}

/** The bytes after the fault is applied. */
async function* spoilt(bytes: AsyncIterable<Buffer>, { fault, request }: Call): AsyncGenerator<Buffer> {
  let left = typeof fault === 'object' && 'cutAfter' in fault ? fault.cutAfter : Number.POSITIVE_INFINITY
  let flips = typeof fault === 'object' && 'flip' in fault
  for await (const chunk of bytes) {
    const part = chunk.subarray(0, left)
    if (flips && part.length > 0) part[0]! ^= 1
    flips = false
    left -= part.length
    yield part
    if (left > 0) continue
    await new Promise(resolve => setImmediate(resolve))
    request.socket.destroy()
    return
  }
}

function begin(s3: SmallS3, call: Call): void {
  const uploadId = randomUUID()
  const { bucket, key } = call
  s3.uploads.set(uploadId, { bucket, key, metadata: metadataOf(call.headers), parts: new Map() })
  reply(call, `<InitiateMultipartUploadResult><UploadId>${uploadId}</UploadId></InitiateMultipartUploadResult>`)
}

async function putPart(s3: SmallS3, call: Call, uploadId: string, take: Receive): Promise<void> {
  const upload = s3.uploads.get(uploadId)
  if (upload === undefined) throw new S3Error(404, 'NoSuchUpload')
  const number = Number(call.query.get('partNumber'))
  if (call.headers['x-amz-copy-source'] === undefined) {
    const part = await take(call.request)
    upload.parts.set(number, part)
    return reply(call, '', { etag: `"${part.md5}"` })
  }
  const source = sourceOf(s3, call)
  const [, from = '0', to = `${source.size - 1}`] =
    /^bytes=(\d+)-(\d+)$/.exec(String(call.headers['x-amz-copy-source-range'])) ?? []
  const size = Number(to) - Number(from) + 1
  const md5 = randomUUID().replaceAll('-', '')
  upload.parts.set(number, { slices: cutOut(source.slices, Number(from), Number(to)), size, md5 })
  reply(call, `<CopyPartResult><ETag>"${md5}"</ETag></CopyPartResult>`)
}

async function complete(s3: SmallS3, call: Call, bucket: Bucket, uploadId: string): Promise<void> {
  const upload = s3.uploads.get(uploadId)
  const text = await textOf(call.request)
  if (upload === undefined) throw new S3Error(404, 'NoSuchUpload')
  const numbers = [...text.matchAll(/<PartNumber>(\d+)<\/PartNumber>/g)].map(match => Number(match[1]))
  const parts = numbers.map(number => upload.parts.get(number))
  const whole = parts.filter(part => part !== undefined)
  if (whole.length !== parts.length || whole.length === 0) throw new S3Error(400, 'InvalidPart')
  if (numbers.some((number, at) => at > 0 && number <= numbers[at - 1]!)) throw new S3Error(400, 'InvalidPartOrder')
  if (whole.slice(0, -1).some(({ size }) => size < 5 << 20)) throw new S3Error(400, 'EntityTooSmall')
  const object = joined(whole, upload.metadata)
  bucket.set(upload.key, object)
  s3.uploads.delete(uploadId)
  reply(call, `<CompleteMultipartUploadResult><ETag>${object.etag}</ETag></CompleteMultipartUploadResult>`)
}

async function removeMany(call: Call, bucket: Bucket): Promise<void> {
  const text = await textOf(call.request)
  const keys = [...text.matchAll(/<Key>([^<]*)<\/Key>/g)].map(match => unescaped(match[1]!))
  if (keys.length > 1000) throw new S3Error(400, 'MalformedXML')
  for (const key of keys) bucket.delete(Buffer.from(key).toString('latin1'))
  reply(call, '<DeleteResult></DeleteResult>')
}

function sourceOf(s3: SmallS3, { headers }: Call): StoredObject {
  const [bucket = '', ...rest] = String(headers['x-amz-copy-source']).replace(/^\//, '').split('/')
  const source = s3.buckets.get(bucket)?.get(latin1(rest.join('/')))
  if (source === undefined) throw new S3Error(404, 'NoSuchKey')
  return source
}

function checkConditions({ headers }: Call, object: StoredObject | undefined): void {
  const [match, none] = [headers['if-match'], headers['if-none-match']]
  if (match !== undefined && match !== object?.etag) throw new S3Error(412, 'PreconditionFailed')
  if (none !== undefined && object !== undefined && (none === '*' || none === object.etag))
    throw new S3Error(412, 'PreconditionFailed')
}

function metadataOf(headers: IncomingMessage['headers']): Record<string, string> {
  const own = Object.entries(headers).filter(([name]) => name.startsWith('x-amz-meta-'))
  return Object.fromEntries(own.map(([name, value]) => [name.slice('x-amz-meta-'.length), String(value)]))
}

function reply({ response, request, fault }: Call, xml: string, headers: Record<string, string> = {}, status = 200) {
  if (fault === 'lose') request.socket.destroy()
  else response.writeHead(status, { 'content-type': 'application/xml', ...headers }).end(xml)
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function unescaped(text: string): string {
  return text.replace(/&(\w+);/g, (_, name) => entities[name] ?? '')
}

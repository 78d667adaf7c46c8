/** Downloads an object. If the connection breaks, the rest is requested again. */
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { GetObjectCommand, type GetObjectCommandOutput } from '@aws-sdk/client-s3'
import { Problem } from '../kernel/problem.ts'
import { targetOf } from './s3.ts'
import type { S3Connection } from './s3-client.ts'
import { options } from './s3-parts.ts'
import { s3Problem } from './s3-problem.ts'

export async function openObject(connection: S3Connection, uri: string, signal?: AbortSignal): Promise<Readable> {
  const closed = new AbortController()
  const stop = AbortSignal.any([closed.signal, ...(signal ? [signal] : [])])
  const get = (more: { Range?: string; IfMatch?: string } = {}) =>
    connection.ask(uri, client => client.send(new GetObjectCommand({ ...targetOf(uri), ...more }), options(stop)), stop)
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

/**
 * Parses bodies: JSON, or YAML for a job spec. Other content types, which a web page can send without a preflight,
 * are not read. Each type has its own limit, because YAML takes far more work and memory to parse.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { extname } from 'node:path'
import { Transform } from 'node:stream'
import { Worker } from 'node:worker_threads'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Problem } from '../kernel/problem.ts'
import { threadFlags } from '../kernel/thread-flags.ts'
import { type Fault, specInvalid } from '../spec/faults.ts'
import { JsonBounds } from '../spec/json-bounds.ts'

export interface BodyLimits {
  readonly maxBodyBytes: number
  readonly maxYamlBytes: number
}

export function readBodies(app: FastifyInstance, { maxBodyBytes, maxYamlBytes }: BodyLimits): void {
  app.removeAllContentTypeParsers()
  app.addHook('onRequest', async ({ headers }) => {
    const { 'content-encoding': packed = 'identity', 'content-type': type = '' } = headers
    if (packed !== 'identity' || /charset=(?!"?utf-8"?\s*(;|$))/i.test(type)) throw new Problem('BODY_TYPE')
  })
  app.addHook('preParsing', async ({ headers }, _reply, body) =>
    isJson(headers['content-type']) && !isSmall(headers) ? body.pipe(bounded(body)) : body,
  )
  const json = { parseAs: 'buffer', bodyLimit: maxBodyBytes } as const
  app.addContentTypeParser('application/json', json, async ({ headers }: FastifyRequest, body: Buffer) => {
    const fault = isSmall(headers) ? new JsonBounds().take(body) : undefined
    if (fault !== undefined) throw tooLarge(fault)
    return parse(textOf(body))
  })
  // As for JSON, browsers send a preflight before this type.
  const yaml = { parseAs: 'buffer', bodyLimit: Math.min(maxYamlBytes, maxBodyBytes) } as const
  app.addContentTypeParser('application/yaml', yaml, async (_request: unknown, body: Buffer) => textOf(body))
}

const isJson = (type = '') => /^application\/json\b/i.test(type)

/** A body of at most this length is checked when it has arrived. Another stream would cost more than the check. */
const smallBytes = 65_536

function isSmall({ 'content-length': length }: IncomingHttpHeaders): boolean {
  return length !== undefined && Number(length) <= smallBytes
}

const tooLarge = (why: string) => new Problem('BODY_TOO_LARGE', { why })

/** Checks the bounds of JSON while it arrives. Bytes are counted as received, also those of overwritten keys. */
function bounded(source: NodeJS.ReadableStream): Transform {
  const bounds = new JsonBounds()
  const checked = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const fault = bounds.take(chunk)
      done(fault === undefined ? null : tooLarge(fault), chunk)
    },
  })
  // Stops if the client disconnects, and discards the rest of a refused body.
  source.on('error', error => checked.destroy(error))
  checked.on('error', () => source.resume())
  return checked
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function textOf(body: Buffer): string {
  try {
    return utf8.decode(body)
  } catch {
    throw new Problem('BODY_INVALID', { why: 'it is not UTF-8' })
  }
}

function parse(text: string): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Problem('BODY_INVALID', { why: (error as Error).message })
  }
}

/** A text of this length is parsed in some milliseconds, faster than a thread starts. */
const shortText = 20_000
/** Parsing should take a second or two. */
const longestMs = 30_000
const mostMegabytes = 512

type Read = { readonly value: unknown } | { readonly faults: Fault[] }

/** Maximum number of texts in the queue. More are refused, because they would wait for minutes. */
const mostWaiting = 20

let latest: Promise<unknown> = Promise.resolve()
let waiting = 0

/**
 * Parses the text of a job spec. A megabyte of YAML takes a second or more, so a thread parses it while this one
 * answers other requests. One text is parsed at a time, which limits the memory. A short text is returned unchanged:
 * the engine parses it.
 */
export function parseSpecText(text: string): Promise<unknown> {
  if (text.length <= shortText) return Promise.resolve(text)
  if (waiting >= mostWaiting) return Promise.reject(new Problem('SPECS_WAIT'))
  waiting += 1
  const reading = latest
    .then(() => readInThread(text))
    .finally(() => {
      waiting -= 1
    })
  latest = reading.catch(() => {})
  return reading
}

async function readInThread(text: string): Promise<unknown> {
  const thread = new Worker(new URL(`./yaml-thread${extname(import.meta.url)}`, import.meta.url), {
    workerData: text,
    execArgv: threadFlags,
    resourceLimits: { maxOldGenerationSizeMb: mostMegabytes },
  })
  const tooMuch = () => specInvalid([{ at: 'spec', why: 'takes too much time or memory to read; send it as JSON' }])
  let timer: NodeJS.Timeout | undefined
  try {
    const read = await new Promise<Read>((resolve, reject) => {
      timer = setTimeout(() => reject(tooMuch()), longestMs)
      thread.on('message', resolve)
      thread.on('error', (error: NodeJS.ErrnoException) =>
        reject(error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? tooMuch() : error),
      )
    })
    if ('faults' in read) throw specInvalid(read.faults)
    // The engine would parse it as a spec again.
    if (typeof read.value === 'string') throw specInvalid([{ at: 'spec', why: 'must be an object' }])
    return read.value
  } finally {
    clearTimeout(timer)
    await thread.terminate()
  }
}

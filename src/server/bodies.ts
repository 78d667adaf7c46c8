/**
 * Parses bodies: JSON, or YAML for a job spec. Other content types, which a web page can send without a preflight,
 * are not read. Each type has its own limit, because YAML takes far more work and memory to parse.
 */
import { Transform } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { Problem } from '../kernel/problem.ts'
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
    isJson(headers['content-type']) ? body.pipe(bounded(body)) : body,
  )
  const json = { parseAs: 'buffer', bodyLimit: maxBodyBytes } as const
  app.addContentTypeParser('application/json', json, async (_request: unknown, body: Buffer) => parse(textOf(body)))
  // As for JSON, browsers send a preflight before this type.
  const yaml = { parseAs: 'buffer', bodyLimit: Math.min(maxYamlBytes, maxBodyBytes) } as const
  app.addContentTypeParser('application/yaml', yaml, async (_request: unknown, body: Buffer) => textOf(body))
}

const isJson = (type = '') => /^application\/json\b/i.test(type)

/** Checks the bounds of JSON while it arrives. Bytes are counted as received, also those of overwritten keys. */
function bounded(source: NodeJS.ReadableStream): Transform {
  const bounds = new JsonBounds()
  const checked = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const fault = bounds.take(chunk)
      done(fault === undefined ? null : new Problem('BODY_TOO_LARGE', { why: fault }), chunk)
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

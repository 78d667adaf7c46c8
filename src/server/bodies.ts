/** Bodies are JSON and nothing else: what a form or a page can send without asking is not even read. */
import type { FastifyInstance } from 'fastify'
import { Problem } from '../kernel/problem.ts'

export function readBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addHook('onRequest', async ({ headers }) => {
    const { 'content-encoding': packed = 'identity', 'content-type': type = '' } = headers
    if (packed !== 'identity' || /charset=(?!"?utf-8"?\s*(;|$))/i.test(type)) throw new Problem('BODY_TYPE')
  })
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (_request: unknown, body: Buffer) =>
    parse(body),
  )
  // A page must ask before it sends this, as it must for JSON.
  app.addContentTypeParser('application/yaml', { parseAs: 'buffer' }, async (_request: unknown, body: Buffer) =>
    textOf(body),
  )
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

function textOf(body: Buffer): string {
  try {
    return utf8.decode(body)
  } catch {
    throw new Problem('BODY_INVALID', { why: 'it is not UTF-8' })
  }
}

export const mostLevels = 500
export const mostValues = 5_000_000

/**
 * What of a JSON text would take too much memory to parse, if anything does. Megabytes of brackets become gigabytes of
 * objects, so levels and values are counted before there are any. Bytes suffice: in UTF-8, those of other characters are
 * none of these.
 */
export function sizeFault(body: Uint8Array): string | undefined {
  let levels = 0
  let values = 1
  let isInText = false
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]
    if (isInText) {
      if (byte === 0x5c /* \ */) at += 1
      else if (byte === 0x22 /* " */) isInText = false
    } else if (byte === 0x22) isInText = true
    else if (byte === 0x5b /* [ */ || byte === 0x7b /* { */) {
      levels += 1
      values += 1
      if (levels > mostLevels) return `it is nested more than ${mostLevels} levels deep`
    } else if (byte === 0x5d /* ] */ || byte === 0x7d /* } */) levels -= 1
    else if (byte === 0x2c /* , */) values += 1
  }
  return values > mostValues ? `it holds more than ${mostValues.toLocaleString('en')} values` : undefined
}

function parse(body: Buffer): unknown {
  const fault = sizeFault(body)
  if (fault !== undefined) throw new Problem('BODY_INVALID', { why: fault })
  const text = textOf(body)
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Problem('BODY_INVALID', { why: (error as Error).message })
  }
}

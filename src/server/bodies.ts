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
    parse(textOf(body)),
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

function parse(text: string): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Problem('BODY_INVALID', { why: (error as Error).message })
  }
}

/** Routes that need no key: documentation and health. They reveal nothing from the store. */
import type { FastifyInstance } from 'fastify'
import type { Engine } from '../engine/engine.ts'
import { docsPage, docsPolicy } from './docs-page.ts'
import { openApi } from './open-api.ts'
import type { Watchdog } from './watchdog.ts'

export const publicPaths = ['/openapi.json', '/docs', '/healthz', '/readyz'] as const

export function bindDocs(app: FastifyInstance): void {
  const document = JSON.stringify(openApi())
  const page = docsPage()
  app.get('/openapi.json', (_request, reply) => reply.type('application/json').send(document))
  app.get('/docs', (_request, reply) =>
    reply.type('text/html; charset=utf-8').header('content-security-policy', docsPolicy).send(page),
  )
}

export function bindHealth(app: FastifyInstance, engine: Pick<Engine, 'ready'>, watchdog: Watchdog): void {
  app.get('/healthz', () => ({ ok: true }))
  app.get('/readyz', async () => {
    watchdog.check()
    await engine.ready()
    return { ok: true }
  })
}

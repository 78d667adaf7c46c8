/** A fresh engine behind a server of its own, and a client that is connected to it. */
import type { TestContext } from 'node:test'
import { type ClientOptions, connect, type PawlClient } from '../../src/client/client.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { dialectNames } from '../../src/protocol/dialects.ts'
import type { ServerOptions } from '../../src/server/options.ts'
import { type Server, startServer } from '../../src/server/server.ts'
import { checkAnswersOf } from './checked-answers.ts'
import { type Fresh, type FreshOptions, fresh } from './fresh.ts'

export interface Served extends Fresh {
  readonly server: Server
  readonly client: PawlClient
  /** One request as a browser or curl would send it. */
  request(path: string, init?: RequestInit & { json?: unknown }): Promise<Response>
}

export interface ServedOptions {
  readonly engine?: FreshOptions
  readonly server?: ServerOptions
  readonly client?: ClientOptions
  /** Runs before the server starts. */
  readonly before?: (engine: Engine) => Promise<unknown>
}

export async function served(t: TestContext, options: ServedOptions = {}): Promise<Served> {
  const started: Server[] = []
  // Before its store is closed.
  t.after(() => Promise.all(started.map(server => server.close())))
  const run = await fresh(t, options.engine)
  await options.before?.(run.engine)
  const server = await startServer(run.engine, {
    port: 0,
    blockedSeconds: 0,
    dialects: dialectNames,
    log: showBugs,
    ...options.server,
  })
  started.push(server)
  checkAnswersOf(t, server.url)
  const client = connect({ server: server.url, patienceSeconds: 0, ...options.client })
  return {
    ...run,
    server,
    client,
    request(path, { json, ...init } = {}) {
      const body = json === undefined ? {} : { body: JSON.stringify(json) }
      const headers = { ...(json !== undefined && { 'content-type': 'application/json' }), ...init.headers }
      return fetch(new URL(path, server.url), { ...init, ...body, headers })
    },
  }
}

/** A bug of the server is not shown to its client. Tests need it. */
function showBugs(word: string, { stack }: Record<string, unknown>): void {
  if (word === 'http.bug') console.error(stack)
}

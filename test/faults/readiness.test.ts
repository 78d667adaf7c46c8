/** /readyz tells within a second whether the store accepts writes, and names each problem of the store. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { makeLog } from '../../src/cli/log.ts'
import { type Engine, openEngine, type PawlOptions } from '../../src/engine/engine.ts'
import { startServer } from '../../src/server/server.ts'
import type { Sql } from '../../src/store/driver/sql.ts'
import { needsServer } from '../harness/databases.ts'
import { eventually } from '../harness/eventually.ts'
import { fresh } from '../harness/fresh.ts'
import { smallDiskCluster } from '../harness/small-disk.ts'
import { tcpProxy } from '../harness/tcp-proxy.ts'

const bounded = { timeout: 600_000, ...needsServer() }

/** A server on its own engine. */
async function serving(t: TestContext, options: PawlOptions) {
  const engine = await openEngine({ migrate: false, ...options })
  const server = await startServer(engine, { port: 0, blockedSeconds: 0 })
  t.after(async () => {
    await server.close()
    await engine.close()
  })
  const ready = () => describe(fetch(`${server.url}/readyz`))
  const enqueue = (payload: unknown = 1) =>
    describe(
      fetch(`${server.url}/v1/tasks`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ type: 'a', payload }),
      }),
    )
  return { engine, server, ready, enqueue }
}

/** The status, the problem code if there is one, and whether there is a Retry-After. */
async function describe(asked: Promise<Response>): Promise<[number, string | undefined, boolean]> {
  const response = await asked
  const { code } = (await response.json()) as { code?: string }
  return [response.status, code, response.headers.has('retry-after')]
}

test('a read-only database is not ready, and writes are refused by that name', bounded, async t => {
  const run = await fresh(t)
  const url = new URL(run.url!)
  url.searchParams.set('options', '-c default_transaction_read_only=on')
  const { ready, enqueue } = await serving(t, { database: url.href, schema: run.schema })
  assert.deepEqual(await ready(), [503, 'STORE_READ_ONLY', true])
  assert.deepEqual(await enqueue(), [503, 'STORE_READ_ONLY', true])
})

test('a database that accepts no more connections is not ready, and says so', bounded, async t => {
  const run = await fresh(t)
  const admin = new pg.Client(run.url!)
  await admin.connect()
  const role = `crowded_${run.schema}`
  await admin.query(`create role "${role}" login connection limit 0`)
  t.after(async () => {
    await admin.query(`drop role "${role}"`)
    await admin.end()
  })
  const url = new URL(run.url!)
  url.username = role
  const { ready, enqueue } = await serving(t, { database: url.href, schema: run.schema })
  assert.deepEqual(await ready(), [503, 'STORE_CROWDED', true])
  assert.deepEqual(await enqueue(), [503, 'STORE_CROWDED', true])
})

test('while the database hangs, /readyz answers long before statements are given up', bounded, async t => {
  const run = await fresh(t)
  const proxy = await tcpProxy(t, Number(new URL(run.url!).port))
  const { ready, enqueue } = await serving(t, { database: proxy.through(run.url!), schema: run.schema })
  assert.deepEqual(await ready(), [200, undefined, false])
  proxy.freezeAll()
  const answers: string[] = []
  const asked = [enqueue().then(() => answers.push('enqueue')), ready().then(() => answers.push('ready'))]
  await Promise.all(asked)
  proxy.thaw()
  assert.deepEqual(answers, ['ready', 'enqueue'])
  await eventually('it is ready again', async () => (await ready())[0] === 200)
})

test('a full disk is named, /readyz says so, and both recover when there is room again', bounded, async t => {
  const small = await smallDiskCluster(t, 256)
  if (small === undefined) return t.skip('mounting a small disk needs root on Linux')
  const { disk, cluster } = small
  const { engine, ready, enqueue } = await serving(t, { database: cluster.url, migrate: true })
  const large = 'x'.repeat(200_000)
  const acknowledged = [await engine.enqueue('a', large)]
  assert.deepEqual(await ready(), [200, undefined, false])
  disk.fill()
  const refusal = await eventually('a write is refused', async () => {
    const answer = await enqueue(large)
    return answer[0] === 201 ? undefined : answer
  })
  assert.deepEqual(refusal, [503, 'STORE_FULL', true])
  assert.deepEqual(await ready(), [503, 'STORE_FULL', true])
  disk.empty()
  const emptiedAt = performance.now()
  await eventually('it is ready again', async () => (await ready())[0] === 200)
  acknowledged.push(await engine.enqueue('a', large))
  t.diagnostic(`writes succeeded ${Math.round(performance.now() - emptiedAt)} ms after there was room again`)
  for (const { id } of acknowledged) assert.equal((await engine.task(id)).state, 'queued')
})

test('a bug is logged at the level error, under the id that the answer names', async t => {
  const lines: string[] = []
  const log = makeLog({ level: 'warn', format: 'json', out: { write: line => lines.push(line) } })
  const { engine } = await fresh(t)
  const throwing = () => {
    throw new TypeError('never mind')
  }
  const sql = Object.assign(throwing, engine.context.sql) as unknown as Sql
  const broken: Engine = { ...engine, context: { ...engine.context, sql } }
  const server = await startServer(broken, { port: 0, log, dialects: ['jsm'] })
  t.after(() => server.close())
  const response = await fetch(`${server.url}/v1/jobs`)
  assert.equal(response.status, 500)
  const { detail, details } = (await response.json()) as { detail: string; details: { requestId: string } }
  const line = JSON.parse(lines[0]!)
  assert.deepEqual([line.event, line.level, line.requestId], ['http.bug', 'error', details.requestId])
  assert.ok(detail.includes(line.requestId))
})

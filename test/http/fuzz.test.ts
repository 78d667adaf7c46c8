import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Engine } from '../../src/engine/engine.ts'
import { type Role, roles } from '../../src/kernel/role.ts'
import { type DialectName, dialectNames } from '../../src/protocol/dialects.ts'
import { dice, seed } from '../harness/dice.ts'
import { served } from '../harness/served.ts'
import { type RandomRequest, randomRequest } from './random-request.ts'

/** `npm run fuzz` sends more, and bounds how long an answer may take: it runs alone on the machine. */
const isAlone = process.env.PAWL_FUZZ_REQUESTS !== undefined
const requests = Number(process.env.PAWL_FUZZ_REQUESTS ?? 4000)
const atOnce = 8
const slowestMs = 2000

test('whatever is sent with a key of whatever role, the server answers without a fault and grows no larger', {
  timeout: 3_600_000,
}, async t => {
  const run = await served(t, {
    server: { keysOnly: true, maxBodyBytes: 100_000, dialects: dialectNames },
    before: engine => engine.createKey({ name: 'first', role: 'admin' }),
  })
  const ids = await someIds(run.engine)
  const keys = await someKeys(run.engine)
  const throwing = dice(seed)
  const statuses = new Map<number, number>()
  let slowest = { ms: 0, path: '' }
  let sent = 0
  let heapAtQuarter = 0

  async function keepAsking(): Promise<void> {
    while (sent < requests) {
      sent += 1
      if (sent === Math.floor(requests / 4)) heapAtQuarter = heapUsed()
      const asked = randomRequest(throwing, ids)
      const began = performance.now()
      const status = await ask(run.server.url, asked, throwing.among(keys)!, ids)
      const ms = performance.now() - began
      if (ms > slowest.ms) slowest = { ms, path: `${asked.method} ${asked.path}` }
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      const about = `${JSON.stringify(asked).slice(0, 2000)} (seed ${seed})`
      // A store on a busy machine may be too slow to be ready, and these then say so.
      const saysNotReady = status === 503 && readiness.some(path => asked.path.startsWith(path))
      assert.ok(status < 500 || saysNotReady, `${status} for ${about}`)
      if (isAlone) assert.ok(ms < slowestMs, `${Math.round(ms)} ms for ${about}`)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, keepAsking))
  const counts = [...statuses].sort().map(([status, count]) => `${status} ×${count}`)
  const grown = heapAtQuarter > 0 ? heapUsed() - heapAtQuarter : 0
  t.diagnostic(`${sent} requests: ${counts.join(', ')}`)
  t.diagnostic(`slowest: ${Math.round(slowest.ms)} ms, ${slowest.path.slice(0, 200)}`)
  t.diagnostic(`memory grew by ${(grown / 1e6).toFixed(1)} MB after the first quarter`)
  assert.ok((statuses.get(200) ?? 0) + (statuses.get(201) ?? 0) > sent / 20, 'some of them were sound')
  assert.ok(grown < 40_000_000, 'memory is flat')
  assert.deepEqual(await run.engine.brokenRules(), [])
})

const readiness = ['/readyz', '/dialects/marie/check']

async function ask(server: string, { path, dialect, ...request }: RandomRequest, key: string, ids: string[]) {
  const headers = { ...withKey(dialect, key), ...request.headers }
  const signal = AbortSignal.timeout(20_000)
  const response = await fetch(server + path, { ...request, headers, signal } as RequestInit)
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
    await response.body!.cancel()
    return response.status
  }
  const text = await response.text()
  for (const [id] of text.matchAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g)) if (ids.length < 500) ids.push(id)
  return response.status
}

/** A key in the form that the clients of each system send. */
function withKey(dialect: DialectName | undefined, key: string): Record<string, string> {
  if (dialect === 'pipeline') return { 'x-api-key': key }
  if (dialect === 'falconeri') return { authorization: `Basic ${Buffer.from(`falconeri:${key}`).toString('base64')}` }
  return { authorization: `Bearer ${key}` }
}

/**
 * Keys of every role, for all queues and for one. Several of them may do nearly everything. Otherwise most requests
 * would be refused.
 */
async function someKeys(engine: Engine): Promise<string[]> {
  const made: string[] = []
  for (const role of [...(Object.keys(roles) as Role[]), 'operator', 'operator', 'operator'] as const) {
    made.push((await engine.createKey({ name: role, role })).secret)
    if (role === 'producer' || role === 'worker')
      made.push((await engine.createKey({ name: `${role}-b`, role, queues: ['b'] })).secret)
  }
  const both = await engine.createKey({ name: 'both', roles: ['producer', 'worker'] })
  return [...made, both.secret]
}

/** One entity of each kind, as a target of the requests. */
async function someIds(engine: Engine): Promise<string[]> {
  const queued = await engine.enqueueMany(Array.from({ length: 20 }, (_, index) => ({ type: 'a', payload: index })))
  const jobs = await Promise.all(
    ['a', 'b', 'c'].map(name =>
      engine.submit({
        name,
        open: true,
        stages: [
          { name: 'a', task: 'a', payloads: [1, 2, 3], compensate: { task: 'b' } },
          { name: 'gate', gate: { approvers: 2 } },
          { name: 'c', task: 'c', open: true },
        ],
      }),
    ),
  )
  return [...queued, ...jobs, ...jobs.flatMap(({ stages }) => stages)].map(({ id }) => id)
}

function heapUsed(): number {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  return process.memoryUsage().heapUsed
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { dice, seed } from '../harness/dice.ts'
import { served } from '../harness/served.ts'
import { type RandomRequest, randomRequest } from './random-request.ts'

const requests = 3000
const atOnce = 8

test('whatever is sent, the server answers, never with a fault of its own, and grows no larger', {
  timeout: 600_000,
}, async t => {
  const run = await served(t, { server: { maxBodyBytes: 100_000 } })
  const ids = await someIds(run.engine)
  const throwing = dice(seed)
  const statuses = new Map<number, number>()
  let sent = 0
  let heapAtQuarter = 0

  async function keepAsking(): Promise<void> {
    while (sent < requests) {
      sent += 1
      if (sent === Math.floor(requests / 4)) heapAtQuarter = heapUsed()
      const asked = randomRequest(throwing, ids)
      const status = await ask(run.server.url, asked, ids)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      assert.ok(status < 500, `${status} for ${JSON.stringify(asked).slice(0, 2000)} (seed ${seed})`)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, keepAsking))
  t.diagnostic(`${sent} requests: ${[...statuses].map(([status, count]) => `${status} ×${count}`).join(', ')}`)
  assert.ok((statuses.get(200) ?? 0) + (statuses.get(201) ?? 0) > sent / 20, 'some of them were sound')
  if (heapAtQuarter > 0) assert.ok(heapUsed() - heapAtQuarter < 40_000_000, 'memory is flat')
  assert.deepEqual(await run.engine.brokenRules(), [])
})

async function ask(server: string, { path, ...init }: RandomRequest, ids: string[]): Promise<number> {
  const response = await fetch(server + path, { ...init, signal: AbortSignal.timeout(20_000) } as RequestInit)
  const text = await response.text()
  for (const [id] of text.matchAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g)) if (ids.length < 500) ids.push(id)
  return response.status
}

/** Something of every kind, for the requests to be about. */
async function someIds(engine: Awaited<ReturnType<typeof served>>['engine']): Promise<string[]> {
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

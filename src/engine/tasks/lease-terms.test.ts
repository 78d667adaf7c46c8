/** A claim may set the duration of its leases. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import type { ClaimsRequest } from '../../protocol/tasks/sync.ts'

/** Returns the remaining lease in steps of five seconds, because the test itself takes time. */
async function remainingLease({ engine }: Fresh, id: string): Promise<number | null> {
  const { leaseUntil } = await engine.task(id)
  return leaseUntil === null ? null : Math.ceil((Date.parse(leaseUntil) - (await engine.internals.clock())) / 5000) * 5
}

const claimRequest = (options: Partial<ClaimsRequest>): ClaimsRequest => ({ worker: 'w', queues: ['a'], ...options })

test('a lease is as long as its claimer says, and every beat renews it for as long', async t => {
  const run = await fresh(t)
  const { engine } = run
  const { id } = await engine.enqueue('a', null, { leaseSeconds: 600, heartbeatSeconds: 200 })
  const [claimed] = await engine.claims(claimRequest({ leaseSeconds: 45 }))
  assert.deepEqual([claimed!.leaseSeconds, claimed!.heartbeatSeconds, await remainingLease(run, id)], [45, 200, 45])
  for (const _ of [1, 2]) {
    await run.advance(30)
    await engine.heartbeat(id, 1)
    assert.equal(await remainingLease(run, id), 45)
  }
  const { items } = await engine.taskEvents(id)
  assert.deepEqual(items[1]!.payload, { leaseSeconds: 45 }, 'the event of the claim tells it')
})

test('two missed heartbeats end a lease earlier; a claimer may say how far apart they are, or that it has none', async t => {
  const run = await fresh(t)
  const { engine } = run
  const lengths: [Partial<ClaimsRequest>, lease: number, heartbeat: number | null][] = [
    [{}, 20, 10],
    [{ leaseSeconds: 90 }, 20, 10],
    [{ leaseSeconds: 90, heartbeatSeconds: 30 }, 60, 30],
    [{ leaseSeconds: 90, heartbeatSeconds: null }, 90, null],
    [{ heartbeatSeconds: null }, 60, null],
  ]
  for (const [options, lease, heartbeat] of lengths) {
    const { id } = await engine.enqueue('a', null)
    const [claimed] = await engine.claims(claimRequest(options))
    assert.deepEqual([claimed!.leaseSeconds, claimed!.heartbeatSeconds], [lease, heartbeat], JSON.stringify(options))
    await engine.heartbeat(id, 1)
    assert.equal(await remainingLease(run, id), lease)
  }
})

test('what a claimer said of its lease is forgotten with the lease', async t => {
  const run = await fresh(t)
  const { engine } = run
  const { id } = await engine.enqueue('a', null, { retry: { delaySeconds: 0 } })
  await engine.claims(claimRequest({ leaseSeconds: 500, heartbeatSeconds: null }))
  await engine.release(id, 1)
  const [again] = await engine.claims(claimRequest({}))
  assert.deepEqual([again!.epoch, again!.leaseSeconds, again!.heartbeatSeconds], [2, 20, 10])
  await engine.heartbeat(id, 2)
  assert.equal(await remainingLease(run, id), 20)
})

test('a claim that is sent again under its key is told of the heartbeat that it asked for', async t => {
  const { engine } = await fresh(t)
  await engine.enqueue('a', null)
  const [first, again] = [
    await engine.claims(claimRequest({ heartbeatSeconds: 25 }), { idempotencyKey: 'k' }),
    await engine.claims(claimRequest({ heartbeatSeconds: 25 }), { idempotencyKey: 'k' }),
  ]
  assert.deepEqual([first[0]!.heartbeatSeconds, again[0]!.heartbeatSeconds], [25, 25])
})

test('a lease of no sensible length is refused, and nothing is claimed', async t => {
  const { engine } = await fresh(t)
  await engine.enqueue('a', null)
  for (const options of [{ leaseSeconds: 4 }, { leaseSeconds: 10 ** 9 }, { heartbeatSeconds: 0 }]) {
    await assert.rejects(engine.claims(claimRequest(options)), { code: 'OPTION_INVALID' })
  }
  assert.equal((await engine.queues()).items[0]!.due, 1)
})

test('a claimer’s default for heartbeats holds only where neither the task nor its type says how far apart they are', async t => {
  const run = await fresh(t)
  const { engine } = run
  await engine.putTaskType('typed', { heartbeatSeconds: 15 })
  await engine.putTaskType('silent', { heartbeatSeconds: null })
  const tasks: [type: string, own: object, lease: number, heartbeat: number | null][] = [
    ['untyped', {}, 60, 30],
    ['typed', {}, 30, 15],
    ['typed', { heartbeatSeconds: 12 }, 24, 12],
    ['silent', {}, 60, null],
    ['untyped', { heartbeatSeconds: 12 }, 24, 12],
    ['untyped', { leaseSeconds: 40 }, 40, 30],
  ]
  for (const [type, own, lease, heartbeat] of tasks) {
    const { id } = await engine.enqueue(type, null, { queue: 'a', ...own })
    const [claimed] = await engine.claims(claimRequest({ defaultHeartbeatSeconds: 30 }))
    assert.deepEqual([claimed!.leaseSeconds, claimed!.heartbeatSeconds], [lease, heartbeat], `${type} ${lease}`)
    await engine.heartbeat(id, 1)
    assert.equal(await remainingLease(run, id), Math.ceil(lease / 5) * 5, `${type} ${lease}, renewed`)
  }
  await engine.enqueue('typed', null, { queue: 'a' })
  const [claimed] = await engine.claims(claimRequest({ heartbeatSeconds: 20, defaultHeartbeatSeconds: 30 }))
  assert.equal(claimed!.heartbeatSeconds, 20, 'what the claimer demands goes before both')
})

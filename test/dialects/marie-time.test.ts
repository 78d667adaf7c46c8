/** The times of Marie's jobs: retries, a later start, TTLs, retention and SLAs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ageLanes, expireTasks, retention } from '../../src/babysitter/chores.ts'
import { rescue } from '../../src/babysitter/rescue.ts'
import { inVocabulary } from '../../src/cli/vocabulary.ts'
import { marieRig } from '../harness/marie-rig.ts'

const day = 86_400

// A time zone other than UTC.
process.env.TZ = 'America/New_York'

/** This many seconds from now, by the clock of the database. */
async function inSeconds({ engine }: Awaited<ReturnType<typeof marieRig>>, seconds: number): Promise<string> {
  return new Date((await engine.internals.clock()) + seconds * 1000).toISOString()
}

test('marie: with retry_backoff retries wait 5, 10 and 20 seconds, without it 5 each time; then the job has FAILED', async t => {
  const rig = await marieRig(t)
  for (const [retry_backoff, expected] of [
    [true, [5, 10, 20]],
    [false, [5, 5, 5]],
  ] as const) {
    const id = await rig.submit({ name: 'extract', data: {}, retry_limit: 3, retry_delay: 5, retry_backoff })
    const waits: number[] = []
    for (let attempt = 1; attempt <= 4; attempt++) {
      assert.equal(await rig.work('extract', 'failed'), 1)
      const { state, start_after } = (await rig.marie.job(id)).result
      if (state !== 'RETRY') break
      const { ts } = (await rig.engine.taskEvents(id)).items.at(-1)!
      waits.push(Math.round((Date.parse(start_after) - Date.parse(ts)) / 1000))
      await rig.advance(waits.at(-1)! + 1)
    }
    assert.deepEqual(waits, expected)
    assert.equal(await rig.marie.stateOf(id), 'FAILED')
  }
})

test('marie: a job that says nothing of retries is tried three times, 2 and 4 seconds apart', async t => {
  const rig = await marieRig(t)
  const id = await rig.submit({ name: 'extract', data: {} })
  const { retry_limit, retry_delay, retry_backoff } = (await rig.marie.job(id)).result
  assert.deepEqual([retry_limit, retry_delay, retry_backoff], [2, 2, true])
  for (const wait of [2, 4, 0]) {
    assert.equal(await rig.work('extract', 'failed'), 1)
    await rig.advance(wait + 1)
  }
  assert.equal(await rig.marie.stateOf(id), 'FAILED')
})

test('marie: start_after: a job for later is not dispatched before, alone or in a DAG; a moment without a zone is of UTC', async t => {
  const rig = await marieRig(t)
  const later = await inSeconds(rig, 3600)
  await rig.submit({ name: 'alone', data: {}, start_after: later })
  await rig.submit({ name: 'naive', data: {}, start_after: later.replace('Z', '') })
  const first = await rig.submit({ name: 'first', data: {}, dag_id: 'later' })
  await rig.submit({ name: 'second', data: {}, dag_id: 'later', dependencies: [first], start_after: later })
  assert.equal(await rig.work('first'), 1)
  await rig.advance(3500)
  for (const queue of ['alone', 'naive', 'second']) assert.equal(await rig.work(queue), 0, queue)
  await rig.advance(110)
  for (const queue of ['alone', 'naive', 'second']) assert.equal(await rig.work(queue), 1, queue)
})

test('marie: expire_in_seconds: what is not completed by then is EXPIRED, alone or in a DAG; 0 is for ever', async t => {
  const rig = await marieRig(t)
  const ids = [
    await rig.submit({ name: 'extract', data: {}, expire_in_seconds: 60 }),
    await rig.submit({ name: 'extract', data: {}, expire_in_seconds: 60, dag_id: 'mortal' }),
    await rig.submit({ name: 'extract', data: {}, expire_in_seconds: 0 }),
  ]
  await rig.advance(50)
  await expireTasks.run(rig.engine.context)
  await rig.advance(20)
  await expireTasks.run(rig.engine.context)
  assert.deepEqual(await Promise.all(ids.map(rig.marie.stateOf)), ['EXPIRED', 'EXPIRED', 'CREATED'])
  const { items } = await rig.engine.jobs()
  const dag = await inVocabulary(rig.engine, 'marie').job(items[0]!.id)
  assert.equal(dag.state as string, 'FAILED')
})

test('marie: an execution longer than run_ttl_seconds is given up and tried again; who comes late changes nothing', async t => {
  const rig = await marieRig(t)
  const { run } = rescue({ beginsBlind: false, now: () => 0 })
  for (const [more, seconds] of [
    [{}, 60],
    [{ run_ttl_seconds: 900 }, 900],
  ] as const) {
    const id = await rig.submit({ name: 'extract', data: {}, retry_delay: 0, ...more })
    const [held] = await rig.client.claims({ worker: 'executor', queues: ['extract'], start: true })
    // Half a minute before the end, because the test itself takes time.
    for (let ran = 0; ran + 30 < seconds; ran += 10) {
      await rig.advance(10)
      await rig.client.heartbeat(id, held!.epoch)
    }
    await run(rig.engine.context)
    assert.equal(await rig.marie.stateOf(id), 'ACTIVE')
    for (const _ of [1, 2, 3]) {
      await rig.advance(10)
      await rig.client.heartbeat(id, held!.epoch).catch(() => {})
    }
    await rig.advance(2)
    await run(rig.engine.context)
    assert.equal(await rig.marie.stateOf(id), 'RETRY')
    await assert.rejects(rig.client.succeed(id, held!.epoch), { code: 'LEASE_LOST' })
    assert.equal(await rig.work('extract'), 1)
    assert.equal(await rig.marie.stateOf(id), 'COMPLETED')
  }
})

test('marie: keep_until: the record of an ended job stays until then, and for two days where nothing is said', async t => {
  const rig = await marieRig(t)
  const kept = await rig.submit({ name: 'extract', data: {}, keep_until: await inSeconds(rig, 7 * day) })
  const plain = await rig.submit({ name: 'extract', data: {} })
  await rig.work('extract')
  const found = async (id: string) => (await rig.marie.job(id)).http
  await rig.advance(1.9 * day)
  await retention().run(rig.engine.context)
  assert.deepEqual([await found(kept), await found(plain)], [200, 200])
  await rig.advance(0.2 * day)
  await retention().run(rig.engine.context)
  assert.deepEqual([await found(kept), await found(plain)], [200, 404])
  await rig.advance(5 * day)
  await retention().run(rig.engine.context)
  assert.equal(await found(kept), 404)
})

test('marie: the SLA decides the order: overdue hard, overdue soft, upcoming, none', async t => {
  const rig = await marieRig(t)
  const from = async (soft: number, hard: number) => ({
    soft_sla: await inSeconds(rig, soft),
    hard_sla: await inSeconds(rig, hard),
  })
  const slas = [
    { priority: 0 },
    await from(7200, 9000),
    await from(600, 7200),
    await from(600, 1200),
    await from(-60, -1),
  ]
  const ids: string[] = []
  for (const sla of slas) ids.push(await rig.submit({ name: 'extract', data: {}, ...sla }))
  // A DAG has the SLAs of the job that created it, counted from then.
  const dag = { name: 'extract', data: {}, dag_id: 'urgent' }
  const first = await rig.submit({ ...dag, ...(await from(600, 900)) })
  await rig.advance(1800)
  const second = await rig.submit(dag)
  await ageLanes().run(rig.engine.context)
  const rank = async (id: string) => {
    const [row] = await rig.sql<{ rank: number }>`
      select l.rank from pawl.task t join pawl.lane l on l.id = t.lane_id where t.id = ${id}::uuid`
    return row!.rank
  }
  const [none, upcoming, soft, hard, past] = await Promise.all(ids.map(rank))
  assert.ok(none! < 500 && upcoming! >= 1 && upcoming! <= 499 && upcoming! > none!, `${none}, ${upcoming}`)
  assert.ok(soft! >= 500 && soft! <= 999, `${soft}`)
  for (const late of [hard, past, await rank(first), await rank(second)]) assert.ok(late! >= 1000, `${late}`)
  const order: string[] = []
  for (;;) {
    const [next] = (await rig.client.sync({ worker: 'executor', queues: ['extract'], claim: 1 })).claimed
    if (next === undefined) break
    order.push(next.id)
  }
  assert.deepEqual(new Set(order.slice(0, 4)), new Set([ids[3], ids[4], first, second]))
  assert.deepEqual(order.slice(4), [ids[2], ids[1], ids[0]])
})

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { eventually } from '../../../test/harness/eventually.ts'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { everyState, taskIn } from '../../../test/harness/task-in.ts'
import { rescue } from '../../babysitter/rescue.ts'
import type { Page, TaskQuery, TaskView } from '../../protocol/tasks/tasks.ts'
import { defineTask } from '../../worker/define-task.ts'
import { startWorker } from '../../worker/worker.ts'

const idsOf = (tasks: readonly { id: string }[]) => tasks.map(({ id }) => id)

/** Reads all pages. */
async function allPages<Item>(read: (cursor?: string) => Promise<Page<Item>>): Promise<Item[][]> {
  const pages: Item[][] = []
  for (let cursor: string | undefined; ; ) {
    const { items, next } = await read(cursor)
    pages.push(items)
    if (next === null) return pages
    cursor = next
  }
}

test('tasks are found by state, newest first', async t => {
  const run = await fresh(t)
  const byState = new Map<string, string>()
  for (const state of everyState) byState.set(state, (await taskIn(run, state)).id)
  const newestFirst = [...byState.values()].reverse()
  assert.deepEqual(idsOf((await run.engine.tasks()).items), newestFirst)
  for (const state of everyState) {
    const { items, next } = await run.engine.tasks({ state })
    assert.deepEqual([idsOf(items), items[0]!.state, next], [[byState.get(state)], state, null])
  }
  const mixed = await run.engine.tasks({ state: ['succeeded', 'failed', 'queued'] })
  assert.deepEqual(
    mixed.items.map(({ state }) => state),
    ['failed', 'succeeded', 'queued'],
  )
  const bad = await run.engine.tasks({ state: ['dead_lettered', 'failed', 'cancelled', 'expired'] })
  assert.equal(bad.items.length, 4)
})

test('filters may be combined', async t => {
  const run = await fresh(t)
  const make = async (queue: string, type: string, correlationId: string) =>
    (await run.engine.enqueue(type, null, { queue, correlationId })).id
  const ids = [
    await make('a', 'x', 'one'),
    await make('a', 'y', 'one'),
    await make('b', 'x', 'two'),
    await make('b', 'y', 'two'),
  ]
  await run.engine.deadLetter(ids[0]!, { reasonCode: 'timeout' })
  await run.engine.deadLetter(ids[3]!, { reasonCode: 'parse_error' })
  const found = async (query: TaskQuery) =>
    idsOf((await run.engine.tasks(query)).items)
      .map(id => ids.indexOf(id))
      .sort()
  assert.deepEqual(await found({ queue: 'a' }), [0, 1])
  assert.deepEqual(await found({ type: 'y' }), [1, 3])
  assert.deepEqual(await found({ queue: 'b', type: 'x' }), [2])
  assert.deepEqual(await found({ correlationId: 'two' }), [2, 3])
  assert.deepEqual(await found({ correlationId: 'two', state: 'queued' }), [2])
  assert.deepEqual(await found({ reasonCode: 'timeout' }), [0])
  assert.deepEqual(await found({ state: 'dead_lettered', reasonCode: 'parse_error', queue: 'b' }), [3])
  assert.deepEqual(await found({ queue: 'b', reasonCode: 'timeout' }), [])
  assert.deepEqual(await found({ queue: 'nowhere' }), [])
})

test('pages follow one another without gaps or repeats, though tasks come in between', async t => {
  const run = await fresh(t)
  const ids = idsOf(await run.engine.enqueueMany(Array.from({ length: 10 }, () => ({ type: 'a' })))).reverse()
  const read = async (cursor?: string) => {
    const page = await run.engine.tasks({ queue: 'a', limit: 3, ...(cursor !== undefined && { cursor }) })
    await run.engine.enqueue('a', 'later')
    return page
  }
  const pages = await allPages<TaskView>(read)
  assert.deepEqual(
    pages.map(page => page.length),
    [3, 3, 3, 1],
  )
  assert.deepEqual(idsOf(pages.flat()), ids)
  const exact = await allPages(cursor =>
    run.engine.tasks({ queue: 'a', limit: 7, ...(cursor !== undefined && { cursor }) }),
  )
  assert.deepEqual(
    exact.map(page => page.length),
    [7, 7],
  )
})

test("a task's events can be read page by page, oldest first", async t => {
  const run = await fresh(t)
  const { id } = await taskIn(run, 'dead_lettered')
  await run.engine.redrive({ ids: [id], payload: 1 })
  const pages = await allPages(cursor =>
    run.engine.taskEvents(id, { limit: 2, ...(cursor !== undefined && { cursor }) }),
  )
  assert.deepEqual(
    pages.map(page => page.map(({ seq, id: of, entity, version }) => [seq, of, entity, version])),
    [
      [1, 2],
      [3, 4],
      [5, 6],
    ].map(page => page.map(seq => [seq, `${id}:${seq}`, 'task', 1])),
  )
  assert.deepEqual(
    pages.flat().map(({ from, to, epoch }) => `${from} -> ${to} ${epoch}`),
    [
      'null -> queued 0',
      'queued -> assigned 1',
      'assigned -> running 1',
      'running -> dead_lettered 1',
      'dead_lettered -> dead_lettered 1',
      'dead_lettered -> queued 1',
    ],
  )
  const times = pages.flat().map(({ ts }) => Date.parse(ts))
  assert.deepEqual(times, [...times].sort())
})

test('attempts tell what happened under each lease', async t => {
  const run = await fresh(t)
  const { id, queue } = await taskIn(run, 'queued', { retry: { delaySeconds: 0 } })
  const claim = (worker: string) => run.sync({ worker, queues: [queue], claim: 1 })
  await claim('one')
  await run.sync({ worker: 'one', started: [{ id, epoch: 1 }] })
  const error = { message: 'no' }
  await run.sync({ worker: 'one', settled: [{ id, epoch: 1, outcome: 'failed', error }] })
  await claim('two')
  await run.advance(21)
  await rescue({ beginsBlind: false }).run(run.engine.context)
  await claim('three')
  await run.engine.cancel(id)
  await run.sync({ worker: 'three', settled: [{ id, epoch: 3, outcome: 'succeeded' }] })
  const attempts = await run.engine.attempts(id)
  assert.deepEqual(
    attempts.map(({ epoch, worker, outcome, cause, error: why, startedAt }) => [
      epoch,
      worker,
      outcome,
      cause,
      why,
      startedAt !== null,
    ]),
    [
      [1, 'one', 'retrying', 'reported_failed', error, true],
      [2, 'two', 'retrying', 'lease_lost', null, false],
      [3, 'three', 'succeeded', 'reported_succeeded', null, true],
    ],
  )
  for (const { claimedAt, startedAt, endedAt } of attempts) {
    assert.ok(claimedAt <= (startedAt ?? claimedAt) && (startedAt ?? claimedAt) <= endedAt!)
  }
})

test('the attempt that goes on has no end yet', async t => {
  const run = await fresh(t)
  const { id } = await taskIn(run, 'running')
  const [attempt, ...none] = await run.engine.attempts(id)
  assert.deepEqual([attempt!.outcome, attempt!.endedAt, none.length], [null, null, 0])
  assert.deepEqual(await run.engine.attempts((await taskIn(run, 'queued')).id), [])
})

test('queues tell how deep they are', async t => {
  const run = await fresh(t)
  const depths = async () => (await run.engine.queues()).items.map(({ oldestSeconds: _, ...depth }) => depth)
  assert.deepEqual(await depths(), [])
  await run.engine.enqueueMany([
    { type: 'a' },
    { type: 'a', priority: 5 },
    { type: 'a', priority: 5 },
    { type: 'a', runInSeconds: 100 },
    { type: 'b', runInSeconds: 100 },
  ])
  const { claimed } = await run.sync({ queues: ['a'], claim: 1 })
  await run.advance(10)
  assert.deepEqual(await depths(), [
    { queue: 'a', due: 2, scheduled: 1, held: 1, paused: 0 },
    { queue: 'b', due: 0, scheduled: 1, held: 0, paused: 0 },
  ])
  const [a, b] = (await run.engine.queues()).items
  assert.ok(a!.oldestSeconds! >= 10 && a!.oldestSeconds! < 100, `${a!.oldestSeconds}`)
  assert.equal(b!.oldestSeconds, null)
  await run.sync({ settled: claimed.map(({ id, epoch }) => ({ id, epoch, outcome: 'succeeded' })) })
  await run.advance(100)
  assert.deepEqual(await depths(), [
    { queue: 'a', due: 3, scheduled: 0, held: 0, paused: 0 },
    { queue: 'b', due: 1, scheduled: 0, held: 0, paused: 0 },
  ])
})

test('workers are those that were heard of lately', async t => {
  const run = await fresh(t)
  const [one, two] = [randomUUID(), randomUUID()]
  const claim = (worker: string, session: string, queues: string[]) =>
    run.sync({ worker, session, queues, claim: 1, syncId: randomUUID() })
  await claim('ada', one, ['a', 'b'])
  await claim('bob', two, ['c'])
  const seen = async () =>
    (await run.engine.workers()).items.map(({ worker, session, queues }) => [worker, session, queues])
  assert.deepEqual(await seen(), [
    ['ada', one, ['a', 'b']],
    ['bob', two, ['c']],
  ])
  await run.advance(50)
  await claim('bob', two, ['c'])
  await run.advance(20)
  assert.deepEqual(await seen(), [['bob', two, ['c']]])
  assert.equal((await run.engine.workers({ withinSeconds: 3600 })).items.length, 2)
})

test('what cannot be claimed because its job is paused does not count as due, and makes no queue look old', async t => {
  const run = await fresh(t)
  const job = await run.engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a', payloads: [1, 2] }] })
  await run.engine.pauseJob(job.id)
  await run.advance(100)
  const paused = { queue: 'a', due: 0, scheduled: 0, held: 0, paused: 2, oldestSeconds: null }
  assert.deepEqual((await run.engine.queues()).items, [paused])
  await run.engine.resumeJob(job.id)
  const [open] = (await run.engine.queues()).items
  assert.deepEqual([open!.due, open!.paused, open!.oldestSeconds! >= 100], [2, 0, true])
})

test('workers tell how many tasks they hold, also those that claim without a session', async t => {
  const run = await fresh(t)
  const session = randomUUID()
  await run.engine.enqueueMany([{ type: 'a' }, { type: 'a' }, { type: 'a' }])
  const [done] = (await run.sync({ worker: 'ada', session, queues: ['a'], claim: 2 })).claimed
  await run.sync({ worker: 'sh', queues: ['a'], claim: 1 })
  await run.sync({ worker: 'bob', session: randomUUID(), queues: ['a'], claim: 1 })
  const seen = async () =>
    (await run.engine.workers()).items.map(each => [each.worker, each.leases, each.session !== null])
  assert.deepEqual(await seen(), [
    ['ada', 2, true],
    ['bob', 0, true],
    ['sh', 1, false],
  ])
  await run.sync({ worker: 'ada', settled: [{ id: done!.id, epoch: done!.epoch, outcome: 'succeeded' }] })
  assert.deepEqual((await seen())[0], ['ada', 1, true])
})

test('workers tell how many tasks they do at once, and of which queues they hold some', async t => {
  const run = await fresh(t)
  await run.engine.enqueueMany([{ type: 'a' }, { type: 'b' }, { type: 'b' }])
  await run.sync({ worker: 'ada', session: randomUUID(), queues: ['a', 'b'], slots: 4, claim: 2 })
  await run.sync({ worker: 'sh', queues: ['b'], claim: 1 })
  const seen = (await run.engine.workers()).items.map(({ worker, slots, leasesByQueue }) => [
    worker,
    slots,
    leasesByQueue,
  ])
  assert.deepEqual(seen, [
    ['ada', 4, { a: 1, b: 1 }],
    ['sh', null, { b: 1 }],
  ])
  const worker = startWorker(run.engine, [defineTask({ type: 'c', handler: async () => {} })], {
    name: 'bob',
    concurrency: 7,
  })
  t.after(() => worker.stop())
  await eventually('it is heard of', async () => (await run.engine.workers()).items.some(each => each.slots === 7))
})

test('a worker that is busy and claims nothing is still heard of', async t => {
  const run = await fresh(t)
  const session = randomUUID()
  const { id, epoch } = await claimedBy(run, session)
  for (const _ of [1, 2, 3, 4]) {
    await run.advance(19)
    await run.sync({ worker: 'ada', session, beats: [{ id, epoch }] })
  }
  assert.equal((await run.engine.workers()).items.length, 1)
})

async function claimedBy(run: Fresh, session: string) {
  await run.engine.enqueue('a', null)
  const { claimed } = await run.sync({ worker: 'ada', session, queues: ['a'], claim: 1 })
  return claimed[0]!
}

test('tasks that are read together are each answered, and one that does not exist is refused alone', async t => {
  const run = await fresh(t)
  const [one, other] = await run.engine.enqueueMany([{ type: 'a' }, { type: 'b' }])
  const missing = '00000000-0000-7000-8000-000000000000'
  const results = await Promise.allSettled([one!.id, missing, other!.id, one!.id].map(id => run.engine.task(id)))
  assert.deepEqual(
    results.map(result => (result.status === 'fulfilled' ? result.value.type : result.reason.code)),
    ['a', 'TASK_NOT_FOUND', 'b', 'a'],
  )
})

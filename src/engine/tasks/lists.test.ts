/** Jobs, stages and tasks found by when they were made and how urgent they are, and pages turned by their number. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { served } from '../../../test/harness/served.ts'
import type { JobOrder, JobQuery } from '../../protocol/jobs/jobs.ts'
import type { TaskQuery } from '../../protocol/tasks/tasks.ts'

const minute = 60
const stages = [
  { name: 'a', task: 'a' },
  { name: 'b', task: 'b', queue: 'slow' },
]

test('jobs are found by when they were submitted and by priority, in either order', async t => {
  const { engine, advance } = await fresh(t)
  const ids: string[] = []
  const times: string[] = []
  for (const [index, priority] of [-5, 0, 5].entries()) {
    await advance(minute)
    const { id, createdAt } = await engine.submit({ name: `j${index}`, priority, stages })
    ids.push(id)
    times.push(createdAt)
  }
  const found = async (query: JobQuery) => (await engine.jobs(query)).items.map(({ id }) => ids.indexOf(id))
  assert.deepEqual(await found({}), [2, 1, 0])
  assert.deepEqual(await found({ order: 'oldest' }), [0, 1, 2])
  assert.deepEqual(await found({ createdFrom: times[1]! }), [2, 1])
  assert.deepEqual(await found({ createdTo: new Date(times[1]!) }), [1, 0])
  assert.deepEqual(await found({ createdFrom: times[1]!, createdTo: times[1]! }), [1])
  assert.deepEqual(await found({ priorityFrom: 0 }), [2, 1])
  assert.deepEqual(await found({ priorityFrom: -5, priorityTo: 0, order: 'oldest' }), [0, 1])
  assert.deepEqual(await found({ priorityTo: -6 }), [])
})

test('pages may be turned by their number, and say how many there are in all', async t => {
  const { engine } = await fresh(t)
  const ids: string[] = []
  for (let n = 0; n < 5; n++) ids.push((await engine.submit({ name: 'j', stages })).id)
  const jobs = { order: 'oldest' as const, limit: 2, total: true }
  const middle = await engine.jobs({ ...jobs, offset: 2 })
  assert.deepEqual([middle.items.map(({ id }) => id), middle.total], [ids.slice(2, 4), 5])
  const beyond = await engine.jobs({ ...jobs, offset: 6 })
  assert.deepEqual([beyond.items, beyond.total, beyond.next], [[], 5, null])
  assert.equal('total' in (await engine.jobs()), false)

  const tasks = await engine.tasks({ jobId: ids[0]!, total: true, limit: 1, offset: 1, order: 'oldest' })
  assert.deepEqual([tasks.items.map(({ type }) => type), tasks.total], [['b'], 2])
  const all = await engine.stages({ jobId: ids[1]!, total: true })
  assert.deepEqual([all.items.map(({ name }) => name), all.total], [['a', 'b'], 2])
  const slow = await engine.stages({ queue: 'slow', limit: 2, offset: 4, total: true })
  assert.deepEqual([slow.items.map(({ jobId }) => jobId), slow.total], [ids.slice(4), 5])
  assert.equal((await engine.stages({ queue: 'slow', state: 'pending', total: true })).total, 0)
})

test('tasks are found by their ids and by when they were made, in either order', async t => {
  const { engine, advance } = await fresh(t)
  const ids: string[] = []
  for (let n = 0; n < 4; n++) {
    await advance(minute)
    ids.push((await engine.enqueue('a', n)).id)
  }
  const [, second, third] = await Promise.all(ids.map(async id => (await engine.task(id)).createdAt))
  const found = async (query: TaskQuery) => (await engine.tasks(query)).items.map(({ payload }) => payload)
  assert.deepEqual(await found({ createdFrom: second!, createdTo: third! }), [2, 1])
  assert.deepEqual(await found({ order: 'oldest' }), [0, 1, 2, 3])
  assert.deepEqual(await found({ ids: [ids[3]!, ids[0]!] }), [3, 0])
  assert.deepEqual(await found({ ids: [] }), [])
  const first = await engine.tasks({ order: 'oldest', limit: 3 })
  assert.deepEqual(await found({ order: 'oldest', limit: 3, cursor: first.next! }), [3])
})

test('a job is found by a part of its name in any case, by the beginning of its id, and by its correlation', async t => {
  const { engine } = await fresh(t)
  const { id } = await engine.submit({ name: 'Invoices-2026', correlationId: 'order-7', stages })
  await engine.submit({ name: '100%', stages })
  const found = async (search: string) => (await engine.jobs({ search, total: true })).total
  assert.equal(await found('voices-20'), 1)
  assert.equal(await found('VOICES'), 1)
  assert.equal(await found(id.slice(0, 30).toUpperCase()), 1)
  assert.equal(await found('order-7'), 1)
  assert.equal(await found('order'), 0)
  assert.equal(await found('%'), 1)
  assert.equal(await found('invoices_2026'), 0)
})

test('jobs are in the order that is asked for, page by page', async t => {
  const { engine, advance } = await fresh(t)
  const ids: string[] = []
  for (const [name, priority] of [
    ['b', 1],
    ['C', 9],
    ['a', 5],
  ] as const) {
    ids.push((await engine.submit({ name, priority, stages })).id)
    await advance(60 * ids.length)
  }
  await engine.cancelJob(ids[0]!)
  const names = async (order: JobOrder) => {
    const first = await engine.jobs({ order, limit: 2 })
    const rest = await engine.jobs({ order, limit: 2, cursor: first.next! })
    assert.equal(rest.next, null)
    return [...first.items, ...rest.items].map(job => job.name).join('')
  }
  assert.equal(await names('name'), 'abC')
  assert.equal(await names('priority'), 'Cab')
  assert.equal(await names('changed'), 'baC')
  assert.equal(await names('longest'), 'bCa')
  assert.equal(await names('newest'), 'aCb')
  await assert.rejects(engine.jobs({ order: 'name', cursor: ids[0]! }), { code: 'CURSOR_INVALID' })
})

test('what cannot be meant is refused: an id that is none, a date that is none, an order that is none', async t => {
  const { engine } = await fresh(t)
  const any = (value: unknown) => value as TaskQuery & JobQuery
  for (const query of [
    { ids: ['x'] },
    { createdFrom: 'soon' },
    { order: 'random' },
    { offset: -1 },
    { total: 'yes' },
  ]) {
    await assert.rejects(engine.tasks(any(query)), { code: 'OPTION_INVALID' }, JSON.stringify(query))
  }
  await assert.rejects(engine.jobs(any({ priorityFrom: 0.5 })), { code: 'OPTION_INVALID' })
  await assert.rejects(engine.stages({ jobId: 'x' }), { code: 'JOB_NOT_FOUND' })
})

test('over HTTP the same lists are asked for by the same words', async t => {
  const { client, request } = await served(t)
  const { id, createdAt } = await client.submit({ name: 'j', priority: 3, stages })
  const { items } = await client.tasks({ jobId: id, order: 'oldest', total: true })
  const ids = items.map(task => task.id)
  const found = await client.tasks({ ids, total: true, createdFrom: new Date(createdAt) })
  assert.deepEqual([found.items.map(task => task.id), found.total], [ids.toReversed(), 2])
  assert.equal((await client.jobs({ priorityFrom: 3, priorityTo: 3, total: true, offset: 0 })).total, 1)
  assert.equal((await client.stages({ jobId: id, queue: 'slow', total: true })).total, 1)
  assert.equal((await request('/v1/jobs?total=perhaps')).status, 400)
})

test('the tasks of several stages are counted by their states', async t => {
  const { engine, sync } = await fresh(t)
  const { stages: made } = await engine.submit({
    name: 'j',
    stages: [
      { name: 'a', task: 'a', payloads: [1, 2, 3] },
      { name: 'b', task: 'b' },
      { name: 'c', gate: true },
    ],
  })
  const ids = made.map(({ id }) => id)
  const [one, two] = await engine.claims({ worker: 'w', queues: ['a'], claim: 2 })
  await sync({
    started: [{ id: one!.id, epoch: one!.epoch }],
    settled: [{ id: two!.id, epoch: two!.epoch, outcome: 'failed' }],
  })
  const counts = await engine.internals.taskCounts(ids)
  assert.deepEqual(
    ids.map(id => counts.get(id)),
    [{ running: 1, retrying: 1, queued: 1 }, { blocked: 1 }, undefined],
  )
  assert.equal((await engine.internals.taskCounts([])).size, 0)
})

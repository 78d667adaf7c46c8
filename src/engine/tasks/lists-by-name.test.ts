import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import type { PageQuery } from '../../protocol/call-options.ts'
import type { Page } from '../../protocol/tasks/tasks.ts'
import { maxPageBytes } from '../../store/driver/paging.ts'

/** All pages, each as the names on it. */
async function pagesOf<Item>(
  read: (query: PageQuery) => Promise<Page<Item>>,
  nameOf: (item: Item) => unknown,
  query: PageQuery = {},
): Promise<unknown[][]> {
  const pages: unknown[][] = []
  for (let cursor: string | undefined; ; ) {
    const { items, next } = await read({ ...query, ...(cursor !== undefined && { cursor }) })
    pages.push(items.map(nameOf))
    if (next === null) return pages
    cursor = next
  }
}

test('queues are listed by name, page by page, each once and with all its lanes', async t => {
  const { engine } = await fresh(t)
  const names = ['Zebra', 'apple', 'b', 'ä', '😀'.repeat(100), '\u0001'.repeat(200)]
  await engine.enqueueMany(names.flatMap(queue => [1, 2].map(priority => ({ type: 't', queue, priority }))))
  const inOrder = ['\u0001'.repeat(200), 'Zebra', 'apple', 'b', 'ä', '😀'.repeat(100)]
  const read = (query: PageQuery) => engine.queues(query)
  const pages = await pagesOf(read, ({ queue, due }) => [queue, due], { limit: 2 })
  assert.deepEqual(
    pages.map(page => page.length),
    [2, 2, 2],
  )
  assert.deepEqual(
    pages.flat(),
    inOrder.map(queue => [queue, 2]),
  )
  assert.deepEqual(await pagesOf(read, ({ queue }) => queue), [inOrder])
})

test('a page of queues has 100 unless more are asked for, and at most 1,000', async t => {
  const { engine } = await fresh(t)
  await engine.enqueueMany(Array.from({ length: 150 }, (_, n) => ({ type: 't', queue: `q${n}` })))
  const { items, next } = await engine.queues()
  assert.deepEqual([items.length, next === null], [100, false])
  assert.equal((await engine.queues({ limit: 1000 })).items.length, 150)
  await assert.rejects(engine.queues({ limit: 1001 }), { code: 'OPTION_INVALID' })
  await assert.rejects(engine.queues({ cursor: 'e30' }), { code: 'CURSOR_INVALID' })
})

test('task types are listed by name, page by page', async t => {
  const { engine } = await fresh(t)
  for (const type of ['c', 'a', 'b']) await engine.putTaskType(type, { leaseSeconds: 30 })
  const read = (query: PageQuery) => engine.taskTypes(query)
  assert.deepEqual(await pagesOf(read, ({ type, leaseSeconds }) => [type, leaseSeconds], { limit: 2 }), [
    [
      ['a', 30],
      ['b', 30],
    ],
    [['c', 30]],
  ])
})

test('a type that may have no settings is looked up without an error', async t => {
  const { engine } = await fresh(t)
  await engine.putTaskType('a', { leaseSeconds: 30 })
  await engine.putTaskType('b', {})
  assert.deepEqual(await engine.taskTypes({ type: 'a' }), { items: [{ type: 'a', leaseSeconds: 30 }], next: null })
  assert.deepEqual(await engine.taskTypes({ type: 'c' }), { items: [], next: null })
})

test('a page of task types ends where their schemas become too long, and the next goes on from there', async t => {
  const { engine, sql } = await fresh(t)
  const schema = JSON.stringify({ description: 'x'.repeat(maxPageBytes / 2.5) })
  await sql`
    insert into pawl.task_type (type, payload_schema)
    select 't' || n, ${schema}::json from generate_series(1, 5) as n`
  const pages = await pagesOf(
    query => engine.taskTypes(query),
    ({ type }) => type,
  )
  assert.deepEqual(pages, [['t1', 't2'], ['t3', 't4'], ['t5']])
})

test('workers are listed by name, page by page, also those that share a name or have no session', async t => {
  const run = await fresh(t)
  await run.engine.enqueueMany([{ type: 'a' }, { type: 'a' }])
  const sessions = [randomUUID(), randomUUID(), randomUUID()].sort()
  for (const session of sessions) await run.sync({ worker: 'same', session, queues: ['b'], claim: 1 })
  await run.sync({ worker: 'alone', queues: ['a'], claim: 1 })
  await run.sync({ worker: 'Zoe', queues: ['a'], claim: 1 })
  const pages = await pagesOf(
    query => run.engine.workers(query),
    ({ worker, session }) => [worker, session],
    { limit: 2 },
  )
  assert.deepEqual(pages, [
    [
      ['Zoe', null],
      ['alone', null],
    ],
    [
      ['same', sessions[0]],
      ['same', sessions[1]],
    ],
    [['same', sessions[2]]],
  ])
})

test('a page of workers ends where their queues become too many, and the next goes on from there', async t => {
  const { engine, sql } = await fresh(t)
  await sql`
    insert into pawl.session (id, worker, queues, started_at, seen_at)
    select gen_random_uuid(), 'w' || n, array[repeat('q', ${maxPageBytes}::int / 2 - 100)], pawl.clock(), pawl.clock()
      from generate_series(1, 3) as n`
  const pages = await pagesOf(
    query => engine.workers(query),
    ({ worker }) => worker,
  )
  assert.deepEqual(pages, [['w1', 'w2'], ['w3']])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { dice, seed } from '../../../test/harness/dice.ts'
import { eventually } from '../../../test/harness/eventually.ts'
import { fresh } from '../../../test/harness/fresh.ts'
import { type OpenTransaction, openTransaction } from '../../../test/harness/open-transaction.ts'
import { taskIn } from '../../../test/harness/task-in.ts'
import type { Engine } from '../../engine/engine.ts'
import type { FeedPage } from '../../protocol/tasks/tasks.ts'
import type { Sql } from '../driver/sql.ts'
import { deleteExpiredRecords } from '../tasks/task-chores.ts'
import { deleteOldChanges, startOfChangeScan } from './delete-old-changes.ts'

const nameOf = (event: { entityId: string; seq: number }) => `${event.entityId} ${event.seq}`

/** Every event, from the rows themselves. */
async function allEvents(sql: Sql): Promise<string[]> {
  const rows = await sql<{ id: string; seq: number }>`select id, seq from pawl.task`
  return rows.flatMap(({ id, seq }) => Array.from({ length: seq }, (_, n) => `${id} ${n + 1}`))
}

/**
 * Follows the feed by its cursors. It can lose the last page and continue from an earlier cursor, where it must find
 * the same events again.
 */
function follower(engine: Engine, random: (below: number) => number, why: string) {
  const read: string[] = []
  let before: readonly string[] = []
  const kept: { cursor: string | undefined; read: number }[] = [{ cursor: undefined, read: 0 }]
  const page = async () => {
    const { cursor } = kept.at(-1)!
    const { items, next } = await engine.events({ limit: 1 + random(4), ...(cursor !== undefined && { cursor }) })
    const names = items.map(nameOf)
    assert.deepEqual(
      before.slice(read.length, read.length + names.length),
      names.slice(0, Math.max(0, before.length - read.length)),
      why,
    )
    read.push(...names)
    kept.push({ cursor: next, read: read.length })
    return items.length
  }
  return {
    read,
    page,
    async toTheEnd() {
      while ((await page()) > 0);
    },
    deleteExpiredRecords() {
      if (read.length > before.length) before = [...read]
      kept.splice(1 + random(kept.length))
      read.splice(kept.at(-1)!.read)
    },
  }
}

/** A wrong reader, which takes everything after the last position that it has seen. */
function naiveFollower(sql: Sql) {
  const read: string[] = []
  let last = { tx: 0, n: 0 }
  return {
    read,
    async page() {
      const changes = await sql<{ tx: number; n: number; ids: string[]; seqs: number[] }>`
        select tx, n, ids, seqs from pawl.change where (tx, n) > (${last.tx}::bigint, ${last.n}::bigint) order by tx, n`
      for (const { tx, n, ids, seqs } of changes) {
        read.push(...ids.map((id, index) => `${id} ${seqs[index]}`))
        last = { tx, n }
      }
    },
  }
}

/** Writers that queue and cancel tasks in transactions that commit late and in any order, and a worker between them. */
function writers(engine: Engine, random: (below: number) => number) {
  const open: OpenTransaction[] = []
  const held: { id: string; epoch: number }[] = []
  const someTasks = () => Array.from({ length: 1 + random(3) }, () => ({ type: 'work' }))
  const acts = {
    async open() {
      if (open.length === 5) return
      const writer = await openTransaction(engine.context.sql)
      open.push(writer)
      await engine.enqueueMany(someTasks(), { tx: writer.tx })
    },
    async writeInside() {
      const writer = open[random(open.length)]
      if (writer === undefined) return
      const [task] = held.splice(random(held.length), 1)
      if (task === undefined) await engine.enqueueMany(someTasks(), { tx: writer.tx })
      else await engine.cancel(task.id, { tx: writer.tx, mode: 'hard' })
    },
    async commit() {
      const [writer] = open.splice(random(open.length), 1)
      await writer?.commit()
    },
    async enqueue() {
      await engine.enqueueMany(someTasks())
    },
    async work() {
      const { claimed } = await engine.sync({ worker: 'w', queues: ['work'], claim: 1 + random(4) })
      held.push(...claimed)
      const settled = held.splice(0, random(3)).map(({ id, epoch }) => ({ id, epoch, outcome: 'succeeded' as const }))
      const { refused } = await engine.sync({ worker: 'w', settled })
      assert.deepEqual(refused, [])
    },
  }
  return { acts, commitAll: async () => void (await Promise.all(open.map(writer => writer.commit()))) }
}

test('the feed skips and doubles nothing, however late and out of order its writers commit', needsServer(), async t => {
  const why = `seed ${seed}`
  const random = dice(seed).below
  const { engine, sql } = await fresh(t, { connections: 8 })
  const { acts, commitAll } = writers(engine, random)
  const [reader, naive] = [follower(engine, random, why), naiveFollower(sql)]
  // At the end it is just before the events that are still to be committed.
  const read = async () => {
    if (random(8) === 0) reader.deleteExpiredRecords()
    await (random(4) === 0 ? reader.page() : reader.toTheEnd())
    await naive.page()
  }
  const names = ['open', 'writeInside', 'writeInside', 'commit', 'enqueue', 'work', 'work', 'read', 'read'] as const
  try {
    // This always comes first: one begins, another commits and is read, then the first commits.
    for (const act of [acts.open, acts.enqueue, reader.toTheEnd, naive.page, acts.commit]) await act()
    for (let n = 0; n < 150; n++) {
      const name = names[random(names.length)]!
      await (name === 'read' ? read() : acts[name]())
    }
  } finally {
    await commitAll()
  }
  const all = await allEvents(sql)
  // Transactions of other tests on this server hold the feed back too, until they end.
  await eventually('everything is read', async () => {
    await reader.toTheEnd()
    return reader.read.length >= all.length
  }).catch(() => {})
  await naive.page()

  assert.deepEqual([...reader.read].sort(), all.sort(), why)
  assert.equal((await engine.events({ limit: 10_000 })).items.length, all.length, why)
  const last = new Map<string, number>()
  for (const [id, seq] of reader.read.map(name => name.split(' '))) {
    assert.equal(Number(seq), (last.get(id!) ?? 0) + 1, `the events of ${id} come in their order; ${why}`)
    last.set(id!, Number(seq))
  }
  const missed = all.filter(name => !naive.read.includes(name))
  assert.ok(missed.length > 0, `reading "beyond the last position" must miss something here; ${why}`)
})

test('what a transaction does late to a task comes after what others did to it before', needsServer(), async t => {
  const { engine, sync } = await fresh(t)
  const { id } = await engine.enqueue('work', {})
  const early = await openTransaction(engine.context.sql)
  try {
    await engine.enqueue('other', {}, { tx: early.tx })
    await sync({ queues: ['work'], claim: 1 })
    await engine.cancel(id, { tx: early.tx, mode: 'hard' })
  } finally {
    await early.commit()
  }
  const types = await eventually('everything is read', async () => {
    const { items } = await engine.events()
    return items.length === 4 && items.flatMap(event => (event.entityId === id ? [event.type] : []))
  })
  assert.deepEqual(types, ['task.queued', 'task.claimed', 'task.cancelled'])
})

test('the feed of the embedded store reads through, in pages of any size, and by type', async t => {
  const { engine, sync, sql } = await fresh(t, { database: 'embedded' })
  await engine.enqueueMany(Array.from({ length: 7 }, (_, n) => ({ type: 'work', payload: n })))
  const { claimed } = await sync({ queues: ['work'], claim: 5 })
  await sync({ settled: claimed.slice(0, 3).map(({ id, epoch }) => ({ id, epoch, outcome: 'succeeded' as const })) })
  await engine.cancel(claimed[4]!.id)
  const all = (await allEvents(sql)).sort()
  assert.equal(all.length, 7 + 5 + 2 * 3 + 1)
  for (const limit of [1, 2, 3, 100]) {
    const names: string[] = []
    for (let cursor: string | undefined; ; ) {
      const { items, next } = await engine.events({ limit, ...(cursor !== undefined && { cursor }) })
      if (items.length === 0) {
        assert.equal(next, cursor, 'at the end the cursor stays')
        break
      }
      assert.ok(items.length <= limit)
      names.push(...items.map(nameOf))
      cursor = next
    }
    assert.deepEqual([...names].sort(), all, `pages of ${limit}`)
  }
  const types = ['task.succeeded', 'task.cancel_requested']
  const some: string[] = []
  for (let page = await engine.events({ limit: 2, types }); page.items.length > 0; ) {
    assert.ok(page.items.length <= 2)
    some.push(...page.items.map(({ type }) => type))
    page = await engine.events({ limit: 2, types, cursor: page.next })
  }
  assert.deepEqual(some, [...Array(3).fill('task.succeeded'), 'task.cancel_requested'])
})

for (const [event, change] of Object.entries({
  'the store was moved to another server': "update pawl.meta set system = 'the server that it was moved from'",
  'a standby was promoted': "update pawl.meta set timeline = '00000000'",
  'a restore has lost the event': 'delete from pawl.change where n = (select max(n) from pawl.change)',
  'a restored store has another entity there': 'update pawl.change set ids = array[gen_random_uuid()]',
  'a restored store moved the same task at another moment': "update pawl.change set at = at - interval '1 ms'",
})) {
  test(`a reader whose history is gone is told so, and can begin anew: ${event}`, async t => {
    const { engine, sql } = await fresh(t, { rules: 'broken on purpose' })
    const { id } = await engine.enqueue('work', {})
    const { next, items } = await eventually('it is in the feed', async () => {
      const page = await engine.events()
      return page.items.length === 1 && page
    })
    assert.equal(items[0]!.cursor, next)
    await sql.script(change)
    await assert.rejects(engine.events({ cursor: next }), { code: 'CURSOR_GONE', status: 410 })
    const anew = await engine.events()
    assert.deepEqual(
      anew.items.map(({ entityId }) => entityId).filter(each => each !== id),
      [],
    )
    assert.deepEqual((await engine.events({ cursor: anew.next })).items, [])
  })
}

test('a reader that has read everything keeps its place, however long nothing happens', async t => {
  const run = await fresh(t)
  const { engine, sql, advance } = run
  const { id } = await taskIn(run, 'cancelled')
  await engine.deleteTask(id)
  // Other transactions on the same server hold events back, and a page without them looks like the end.
  await eventually('the feed shows everything', async () => (await engine.internals.totals()).feedLagSeconds === 0)
  const { next } = await eventually('the feed has come to its end', async () => {
    const page = await engine.events()
    return !page.more && page
  })
  await advance(3 * 86_400)
  await deleteExpiredRecords(sql)
  await deleteOldChanges(sql, startOfChangeScan)
  const { more, next: still } = await engine.events({ cursor: next })
  assert.deepEqual(
    [more, (await engine.events({ cursor: still })).items, (await engine.events()).more],
    [false, [], false],
  )
  await engine.enqueue('work', 'next')
  const page = await eventually('the next event is read', async () => {
    const found = await engine.events({ cursor: next })
    return found.items.length > 0 && found
  })
  assert.equal(page.items[0]!.type, 'task.queued')
})

test('a cursor that no feed gave out is refused, and nothing is read', async t => {
  const { engine } = await fresh(t, { database: 'embedded' })
  const { next } = await engine.events()
  const made = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const own = JSON.parse(Buffer.from(next, 'base64url').toString())
  const garbage = ['garbage', '!', next.slice(0, 10), ...[null, [], {}, 'text', 7, { before: 'x' }].map(made)]
  const forged = [{ tx: '1; --' }, { n: null }, { k: 1.5 }, { tx: 2 ** 60 }].map(part => made({ ...own, ...part }))
  for (const cursor of [...garbage, ...forged]) {
    await assert.rejects(engine.events({ cursor }), { code: 'CURSOR_INVALID', status: 400 }, cursor)
  }
})

test('a feed of which little is wanted is read in bounded steps, and says when it has come to its end', async t => {
  const { engine } = await fresh(t)
  for (let n = 0; n < 30; n++) await engine.enqueueMany(Array.from({ length: 2000 }, () => ({ type: 'a' })))
  const { id } = await engine.enqueue('b', 1)
  await engine.cancel(id)
  // Transactions of other tests on this server may hold the feed back: then it has an end, and not everything has been
  // read.
  const pages = await eventually('the feed has come to its end, and all has been read', async () => {
    const read: FeedPage[] = []
    for (let cursor: string | undefined; read.at(-1)?.more !== false; cursor = read.at(-1)!.next) {
      assert.ok(read.length < 10, 'it never says that it has come to its end')
      read.push(await engine.events({ types: ['task.cancelled'], limit: 1, ...(cursor !== undefined && { cursor }) }))
    }
    return read.some(({ items }) => items.length > 0) && read
  })
  const found = pages.map(({ items }) => items.map(({ entityId }) => entityId))
  // One response scans 40,000 of the 60,002 events. An empty one does not mean that there are no more.
  assert.deepEqual(found, [[], [id], []])
})

test('a cursor that leads beyond all numbers is refused', async t => {
  const { engine } = await fresh(t)
  const { id } = await engine.enqueue('a', 1)
  const made = (position: object) => Buffer.from(JSON.stringify(position)).toString('base64url')
  for (const seq of [2 ** 31 - 1, 1e15, -1]) {
    await assert.rejects(engine.taskEvents(id, { cursor: made({ seq }) }), { code: 'CURSOR_INVALID' })
  }
  const { of } = JSON.parse(Buffer.from((await engine.events()).next, 'base64url').toString())
  await assert.rejects(engine.events({ cursor: made({ tx: 0, n: 0, k: 2 ** 31, of }) }), { code: 'CURSOR_INVALID' })
})

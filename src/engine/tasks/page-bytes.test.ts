/** Answers are bounded by their bytes: pages of tasks, jobs, stages and events, and claims. */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import type { SettledTask } from '../../protocol/tasks/sync.ts'
import type { Page } from '../../protocol/tasks/tasks.ts'
import { maxPageBytes } from '../../store/driver/paging.ts'

/** A text that cannot be compressed. Four and a half of them fill a page. */
const long = () => randomBytes(675_000).toString('base64')
const half = () => long().slice(0, 450_000)
/** A text that is stored in about one percent of its length. */
const compressible = 'a'.repeat(1_000_000)
const bytesOf = (items: readonly unknown[]) => Buffer.byteLength(JSON.stringify(items))

async function pagesOf<Item>(read: (cursor: object) => Promise<Page<Item>>): Promise<(readonly Item[])[]> {
  const pages: (readonly Item[])[] = []
  for (let cursor: string | undefined; ; ) {
    const { items, next } = await read(cursor === undefined ? {} : { cursor })
    pages.push(items)
    if (next === null) return pages
    cursor = next
  }
}

const lengths = (pages: readonly (readonly unknown[])[]) => pages.map(page => page.length)

test('a page of tasks ends where their payloads become too large, and the next goes on from there', async t => {
  const { engine } = await fresh(t)
  const queued = await engine.enqueueMany(Array.from({ length: 10 }, () => ({ type: 't', payload: long() })))
  for (const order of ['newest', 'oldest'] as const) {
    const pages = await pagesOf(cursor => engine.tasks({ order, limit: 1000, ...cursor }))
    assert.deepEqual(lengths(pages), [4, 4, 2])
    for (const page of pages) assert.ok(bytesOf(page) < maxPageBytes)
    const ids = pages.flat().map(({ id }) => id)
    assert.deepEqual(order === 'oldest' ? ids : ids.reverse(), queued.map(({ id }) => id).sort())
  }
  const { items, next, total } = await engine.tasks({ limit: 2, offset: 3, total: true })
  assert.deepEqual([items.length, next === null, total], [2, false, 10])
})

test('a payload that is larger than a page has a page of its own', async t => {
  const { engine } = await fresh(t, { maxPayloadBytes: 8_000_000 })
  const payload = randomBytes(4_500_000).toString('base64')
  await engine.enqueueMany([{ type: 't' }, { type: 't', payload }, { type: 't' }])
  const pages = await pagesOf(cursor => engine.tasks({ limit: 1000, order: 'oldest', ...cursor }))
  assert.deepEqual(lengths(pages), [1, 1, 1])
})

test('a page of tasks with compressed payloads is bounded, although they are not read to measure them', async t => {
  const { engine } = await fresh(t)
  await engine.enqueueMany(Array.from({ length: 100 }, () => ({ type: 't', payload: compressible })))
  const { items, next } = await engine.tasks({ limit: 1000 })
  assert.ok(next !== null && bytesOf(items) < 64 * 2 ** 20, `${items.length} tasks`)
})

test('outputs, errors, checkpoints and metadata count as well', async t => {
  const { engine, sync } = await fresh(t)
  await engine.enqueueMany(Array.from({ length: 6 }, () => ({ type: 't', retry: { attempts: 1 } })))
  const { claimed } = await sync({ worker: 'w', queues: ['t'], claim: 6 })
  await sync({
    worker: 'w',
    settled: claimed.map(({ id, epoch }, n) =>
      n % 2 === 0
        ? { id, epoch, outcome: 'succeeded', output: long() }
        : { id, epoch, outcome: 'failed', error: { message: 'no', stack: long() } },
    ),
  })
  const pages = await pagesOf(cursor => engine.tasks({ limit: 1000, ...cursor }))
  assert.deepEqual([pages.length > 1, pages.flat().length], [true, 6])
  for (const page of pages) assert.ok(bytesOf(page) < 2 * maxPageBytes)
})

test('pages of jobs and stages end where their inputs and plans become too large', async t => {
  const { engine } = await fresh(t)
  const ids: string[] = []
  for (let n = 0; n < 6; n++) {
    const { id } = await engine.submit({
      name: 'j',
      input: long(),
      metadata: { n },
      stages: [{ name: 's', task: 't' }],
    })
    ids.push(id)
  }
  for (const order of ['oldest', 'name'] as const) {
    const jobs = await pagesOf(cursor => engine.jobs({ order, limit: 1000, ...cursor }))
    assert.deepEqual(lengths(jobs), [4, 2])
    assert.deepEqual(new Set(jobs.flat().map(({ id }) => id)), new Set(ids))
  }
  await engine.submit({
    name: 'wide',
    stages: Array.from({ length: 6 }, (_, n) => ({ name: `s${n}`, task: 't', metadata: { note: long() } })),
  })
  const stages = await pagesOf(cursor => engine.stages({ limit: 1000, ...cursor }))
  assert.ok(stages.length > 1)
  assert.equal(stages.flat().length, 12)
})

test('a page of events ends where they become too large, and no event is missed', async t => {
  const { engine, sync } = await fresh(t)
  const queued = await engine.enqueueMany(Array.from({ length: 8 }, () => ({ type: 't', retry: { attempts: 1 } })))
  const { claimed } = await sync({ worker: 'w', queues: ['t'], claim: 8 })
  await sync({
    worker: 'w',
    settled: claimed.map(({ id, epoch }) => ({ id, epoch, outcome: 'failed', error: { message: long() } })),
  })
  const read: string[] = []
  let pages = 0
  for (let cursor: string | undefined; ; ) {
    const { items, next, more } = await engine.events({ limit: 10_000, ...(cursor !== undefined && { cursor }) })
    assert.ok(bytesOf(items) < 2 * maxPageBytes)
    read.push(...items.map(({ entityId, seq }) => `${entityId} ${seq}`))
    pages += 1
    if (!more) break
    cursor = next
  }
  const all = queued.flatMap(({ id }) => [1, 2, 3, 4].map(seq => `${id} ${seq}`))
  assert.deepEqual([...read].sort(), all.sort())
  assert.ok(pages > 2, `${pages} pages`)
  const { items } = await engine.events({ latest: 1000 })
  assert.ok(items.length > 0 && bytesOf(items) < 2 * maxPageBytes)
  assert.equal(`${items.at(-1)!.entityId} ${items.at(-1)!.seq}`, read.at(-1))
})

test('the events of one task come in pages that are bounded by their bytes', async t => {
  const { engine } = await fresh(t)
  const { id } = await engine.enqueue('t', null)
  for (let n = 0; n < 36; n++) await engine.patchTask(id, { metadata: { note: long().slice(0, 60_000) } })
  const pages = await pagesOf(cursor => engine.taskEvents(id, { limit: 1000, ...cursor }))
  const seqs = pages.flat().map(({ seq }) => seq)
  assert.deepEqual(
    seqs,
    [...seqs.keys()].map(n => n + 1),
  )
  assert.ok(pages.length > 1)
  for (const page of pages) assert.ok(bytesOf(page) < maxPageBytes)
})

test('what the attempts of one task report stays short enough to be rewritten with each of them', async t => {
  const { engine, sync, advance } = await fresh(t)
  const { id } = await engine.enqueue('t', null, { retry: { attempts: 100, delaySeconds: 0 } })
  const attempt = async (settled: object) => {
    const [{ epoch } = { epoch: 0 }] = (await sync({ worker: 'w', queues: ['t'], claim: 1 })).claimed
    await sync({ worker: 'w', settled: [{ id, epoch, ...settled } as SettledTask] })
    await advance(1)
  }
  for (let n = 0; n < 4; n++) await attempt({ outcome: 'failed', error: { message: long(), stack: 'at work' } })
  await attempt({ outcome: 'failed', error: { message: { text: half() }, stack: half(), name: 'Late' } })
  await attempt({ outcome: 'released', reason: 'r'.repeat(10_000) })
  const ended = (await engine.taskEvents(id)).items.filter(({ to }) => to === 'retrying')
  assert.equal(ended.length, 6)
  const [first, , , fourth, fifth, sixth] = ended.map(({ payload }) => payload)
  assert.deepEqual([bytesOf([first]) > 900_000, bytesOf([fourth]) < 3000, bytesOf([fifth]) < 3000], [true, true, true])
  assert.ok(bytesOf([sixth]) < 3000)
  assert.equal((fifth!.error as { name: string }).name, 'Late')
  assert.ok(bytesOf(ended) < 3_000_000)
})

test('metadata can still be changed after many changes, but its events then say only that it was', async t => {
  const { engine, sql } = await fresh(t)
  const { id } = await engine.enqueue('t', null)
  const patch = () => engine.patchTask(id, { metadata: { note: long().slice(0, 60_000) } })
  for (let n = 0; n < 100; n++) await patch()
  const [row] = await sql<{ bytes: number; last: object | null; first: { patch?: object } }>`
    select pg_column_size(history)::float8 as bytes, (history[101]).payload as last, (history[2]).payload as first
      from pawl.task where id = ${id}`
  assert.ok(row!.bytes < 5_000_000)
  assert.equal(row!.last, null)
  assert.ok(row!.first.patch)
})

test('the stages of a job are limited to what one answer can hold', async t => {
  const { engine } = await fresh(t)
  const wide = (from: number) =>
    Array.from({ length: 18 }, (_, n) => ({ name: `s${from + n}`, task: 't', needs: [], metadata: { note: long() } }))
  const job = await engine.submit({ name: 'wide', open: true, stages: wide(0) })
  await engine.addStages(job.id, wide(100).slice(0, 17))
  const tooLarge = { code: 'PAYLOAD_TOO_LARGE' }
  await assert.rejects(engine.addStages(job.id, wide(200)), tooLarge)
  const note = long().slice(0, 60_000)
  const { stages } = await engine.job(job.id)
  await assert.rejects(async () => {
    for (const { id } of stages) await engine.patchStage(id, { metadata: { more: note } })
  }, tooLarge)
  await engine.patchStage(stages[0]!.id, { metadata: { note: 'short' }, replace: true })
  await engine.patchStage(stages[34]!.id, { metadata: { more: note } })
  assert.equal(stages.length, 35)
})

test('heartbeats with much progress come in pages that are bounded by their bytes', async t => {
  const { engine, sync } = await fresh(t)
  const { id } = await engine.enqueue('t', null)
  const { claimed } = await sync({ worker: 'w', queues: ['t'], claim: 1 })
  for (let n = 0; n < 6; n++) await sync({ worker: 'w', beats: [{ id, epoch: claimed[0]!.epoch, progress: long() }] })
  const pages = await pagesOf(cursor => engine.taskEvents(id, { pulses: true, limit: 1000, ...cursor }))
  assert.ok(pages.length > 1)
  assert.equal(pages.flat().filter(({ type }) => type === 'task.progress').length, 6)
  for (const page of pages) assert.ok(bytesOf(page) < maxPageBytes + 1_000_000)
})

test('a claim ends where its payloads become too large, and the next claim gets the others in order', async t => {
  const { engine } = await fresh(t)
  const queued = await engine.enqueueMany([
    { type: 't', payload: 'short' },
    ...Array.from({ length: 9 }, () => ({ type: 't', payload: long() })),
  ])
  const [last] = await engine.enqueueMany([{ type: 't', payload: 'short' }])
  const inOrder = [...queued, last!].map(({ id }) => id)
  const counts: number[] = []
  for (let done = 0; done < inOrder.length; ) {
    const won = await engine.claims({ worker: 'w', queues: ['t'], claim: 1000 })
    assert.ok(bytesOf(won) < 2 * maxPageBytes)
    counts.push(won.length)
    const next = inOrder.slice(done, done + won.length)
    assert.deepEqual(won.map(({ id }) => id).sort(), next.sort(), 'no task overtakes a large one')
    done += won.length
  }
  assert.ok(counts.length > 1 && counts[0]! > 1, `${counts}`)
})

test('a claim of large tasks of a stage, or of tasks that come back, is bounded as well', async t => {
  const { engine, sync } = await fresh(t)
  const payloads = Array.from({ length: 9 }, long)
  await engine.submit({
    name: 'j',
    stages: [
      { name: 'first', task: 'f' },
      { name: 'large', task: 't', payloads },
    ],
  })
  const [first] = await engine.claims({ worker: 'w', queues: ['f'], start: true })
  await engine.succeed(first!.id, first!.epoch)
  const all = async () => {
    const won: { id: string; epoch: number }[] = []
    const counts: number[] = []
    for (;;) {
      const { claimed } = await sync({ worker: 'w', queues: ['t'], claim: 1000 })
      if (claimed.length === 0) return { won, counts }
      assert.ok(bytesOf(claimed) < 2 * maxPageBytes)
      won.push(...claimed)
      counts.push(claimed.length)
    }
  }
  const { won, counts } = await all()
  assert.deepEqual([won.length, counts.length > 1], [9, true])
  await sync({ worker: 'w', settled: won.map(({ id, epoch }) => ({ id, epoch, outcome: 'released' })) })
  const again = await all()
  assert.deepEqual([again.won.length, again.counts.length > 1], [9, true])
})

test('a claim that is answered again is bounded, although the checkpoints of its tasks have grown', async t => {
  const { engine, sync } = await fresh(t)
  // Stored in about half of its length, and estimated at eight times that.
  const checkpoint = Array.from({ length: 10_000 }, () => randomBytes(25).toString('hex').repeat(2)).join('')
  await engine.enqueueMany(Array.from({ length: 24 }, () => ({ type: 't' })))
  const ask = { worker: 'w', session: randomUUID(), syncId: 's', queues: ['t'], claim: 1000 }
  const { claimed } = await sync(ask)
  assert.deepEqual((await sync(ask)).claimed.length, claimed.length)
  await sync({ worker: 'w', beats: claimed.map(({ id, epoch }) => ({ id, epoch, checkpoint })) })
  const again = (await sync(ask)).claimed
  assert.ok(again.length > 1 && again.length < claimed.length, `${again.length} tasks`)
  assert.deepEqual(
    again.map(({ id }) => id),
    claimed.slice(0, again.length).map(({ id }) => id),
  )
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../test/harness/eventually.ts'
import { fresh } from '../../../test/harness/fresh.ts'

const limits = { timeout: 600_000 }

test('whoever follows a job hears what has happened, then what happens, until it stops listening', limits, async t => {
  const { engine, sync } = await fresh(t)
  const job = await engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a' }] })
  await engine.submit({ name: 'other', stages: [{ name: 'b', task: 'b' }] })
  const over = new AbortController()
  const followed: string[] = []
  const following = (async () => {
    for await (const { items } of engine.follow({ jobId: job.id }, { signal: over.signal })) {
      followed.push(...items.map(({ type }) => type))
    }
  })()
  await eventually('it has heard of the past', () => followed.includes('stage.pending'))
  const { claimed } = await sync({ queues: ['a', 'b'], claim: 10 })
  await sync({ settled: claimed.map(({ id, epoch }) => ({ id, epoch, outcome: 'succeeded' as const })) })
  await eventually('it has heard of the end', () => followed.includes('job.succeeded'))
  assert.equal(followed.filter(type => type === 'job.succeeded').length, 1)
  over.abort()
  await following
})

test('whoever follows a feed in which nothing happens is given an empty page now and then', limits, async t => {
  const { engine } = await fresh(t)
  const over = new AbortController()
  const pages = engine.follow({ latest: 0 }, { signal: over.signal, silenceSeconds: 0.05 })
  for (let n = 0; n < 3; n++) assert.deepEqual((await pages.next()).value?.items, [])
  over.abort()
  assert.equal((await pages.next()).done, true)
})

test('a cursor that nobody made is refused when the first page is asked for', limits, async t => {
  const { engine } = await fresh(t)
  const pages = engine.follow({ cursor: 'x' }, { signal: new AbortController().signal })
  await assert.rejects(pages.next(), { code: 'CURSOR_INVALID' })
})

test('the first page comes at once, though there is nothing in it', limits, async t => {
  const { engine } = await fresh(t)
  const over = new AbortController()
  const pages = engine.follow({ latest: 0 }, { signal: over.signal, silenceSeconds: 3600 })
  assert.deepEqual((await pages.next()).value?.items, [])
  over.abort()
})

/** Events of a time span: the feed between two moments. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../test/harness/eventually.ts'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import type { FeedQuery } from '../../protocol/tasks/tasks.ts'
import { findPositionBefore } from './feed-time.ts'

/** All matching events, page by page. */
async function found({ engine }: Fresh, query: FeedQuery) {
  const ids: string[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await engine.events({ ...query, ...(cursor !== undefined && { cursor }) })
    ids.push(...page.items.map(({ entityId, type }) => `${type} ${entityId}`))
    if (!page.more) return ids
    cursor = page.next
  }
}

/** Tasks that were queued an hour apart, each with the time of its event. */
async function hourly(run: Fresh, count: number) {
  const queued: { id: string; ts: string }[] = []
  for (let n = 0; n < count; n++) {
    const { id } = await run.engine.enqueue('work', n)
    queued.push({ id, ts: (await run.engine.task(id)).createdAt })
    await run.advance(3600)
  }
  await eventually('the feed has all', async () => (await run.engine.events()).items.length === count)
  return queued
}

test('events are found by the time of their transition, both ends included', async t => {
  const run = await fresh(t)
  const queued = await hourly(run, 5)
  const named = (from: number, to: number) => queued.slice(from, to).map(({ id }) => `task.queued ${id}`)
  const { ts: second } = queued[1]!
  const { ts: fourth } = queued[3]!
  assert.deepEqual(await found(run, { since: second }), named(1, 5))
  assert.deepEqual(await found(run, { until: fourth }), named(0, 4))
  assert.deepEqual(await found(run, { since: second, until: fourth }), named(1, 4))
  assert.deepEqual(await found(run, { since: second, until: fourth, limit: 1 }), named(1, 4))
  assert.deepEqual(await found(run, { since: new Date(Date.parse(second) + 1), until: new Date(fourth) }), named(2, 4))
  assert.deepEqual(await found(run, { since: '2999-01-01T00:00:00Z' }), [])
  assert.deepEqual(await found(run, { until: '1999-01-01T00:00:00Z' }), [])
})

test('events are found by type and time together, and the latest of a time, too', async t => {
  const run = await fresh(t)
  const [, second, third] = await hourly(run, 3)
  await run.engine.cancel(third!.id)
  const { endedAt } = await run.engine.task(third!.id)
  const cancelled = [`task.cancelled ${third!.id}`]
  await eventually('the feed has it', async () => (await run.engine.events()).items.length === 4)
  assert.deepEqual(await found(run, { types: ['task.cancelled'], since: endedAt! }), cancelled)
  assert.deepEqual(await found(run, { types: ['task.cancelled'], until: second!.ts }), [])
  const { items } = await run.engine.events({ latest: 2, until: third!.ts })
  assert.deepEqual(
    items.map(({ entityId }) => entityId),
    [second!.id, third!.id],
  )
})

test('an event of a time is found without reading all that was before it', async t => {
  const run = await fresh(t)
  for (let n = 0; n < 40; n++) await run.engine.enqueue('work', n)
  // Recorded a minute apart: the newest now.
  await run.sql`
    update pawl.change c set at = now() - (interval '1 minute') * (o.last - o.place)
      from (select tx, n, row_number() over (order by tx, n) as place, count(*) over () as last from pawl.change) as o
     where c.tx = o.tx and c.n = o.n`
  const since = new Date((await run.engine.internals.clock()) - 10 * 60_000)
  const { tx } = await findPositionBefore(run.sql, since)
  const [passed] = await run.sql<{ count: number }>`select count(*)::int from pawl.change where tx < ${tx}::bigint`
  assert.ok(passed!.count >= 26 && passed!.count <= 30, `${passed!.count} of 40 are passed over`)
})

test('an invalid timestamp is refused', async t => {
  const { engine } = await fresh(t)
  await assert.rejects(engine.events({ since: 'soon' }), { code: 'OPTION_INVALID' })
  await assert.rejects(engine.events({ until: '' }), { code: 'OPTION_INVALID' })
})

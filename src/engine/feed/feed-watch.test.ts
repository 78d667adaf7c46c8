import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FeedPage, FeedQuery } from '../../protocol/tasks/tasks.ts'
import { watchFeed } from './follow.ts'

const never = () => new AbortController().signal
const nothing: FeedPage = { items: [], next: 'end', more: false }
const pageWithEvent = { items: [{}], next: 'end' } as FeedPage

function watchWithReads(answer: (ask: FeedQuery) => FeedPage) {
  const asked: FeedQuery[] = []
  const events = async (ask: FeedQuery = {}) => {
    asked.push(ask)
    return answer(ask)
  }
  return { asked, feed: watchFeed(events) }
}

test('a thousand streams that wait look at the feed together, and all hear of what comes', async () => {
  let reads = 0
  const { asked, feed } = watchWithReads(() => (++reads < 3 ? nothing : pageWithEvent))
  await Promise.all(Array.from({ length: 1000 }, () => feed.more('end', 60_000, never())))
  assert.equal(asked.length, 3)
})

test('a stream that stands elsewhere than the one that is looked for goes and looks itself', {
  timeout: 600_000,
}, async () => {
  const { feed } = watchWithReads(() => nothing)
  const over = new AbortController()
  const first = feed.more('there', 60_000, over.signal)
  await feed.more('here', 60_000, never())
  over.abort()
  await first
})

test('streams look themselves when the feed cannot be read', async () => {
  const { feed } = watchWithReads(() => {
    throw new Error('away')
  })
  await feed.more('end', 60_000, never())
})

test('streams that read the same page share a read, fifty at a time, and a later read is a new one', async () => {
  const { asked, feed } = watchWithReads(() => pageWithEvent)
  const pages = await Promise.all(Array.from({ length: 1000 }, () => feed.read({ cursor: 'here', limit: 500 })))
  assert.deepEqual([asked.length, new Set(pages).size], [20, 1])
  await Promise.all([
    feed.read({ cursor: 'here', limit: 500 }),
    feed.read({ cursor: 'there', limit: 500 }),
    feed.read({}),
  ])
  assert.equal(asked.length, 23)
})

test('a stream waits no longer than it said', async () => {
  const { feed } = watchWithReads(() => nothing)
  await feed.more('end', 1, never())
})

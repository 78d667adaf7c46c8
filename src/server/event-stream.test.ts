import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { Writable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { type Following, follow } from '../engine/feed/follow.ts'
import type { FeedEvent, FeedQuery } from '../protocol/tasks/tasks.ts'
import { streamEvents, streamTexts } from './event-stream.ts'

/** Streams an endless feed to a reader that reads only on request. */
function streaming(t: TestContext, perPage = 1, payload: unknown = null) {
  let takeOne = () => {}
  let asked = 0
  const write = (_chunk: unknown, _encoding: string, taken: () => void) => {
    takeOne = taken
  }
  const to = Object.assign(new Writable({ highWaterMark: 1, write }), { writeHead: () => {} })
  to.on('error', () => {})
  const read = async () => {
    await turn()
    asked += 1
    const event = { type: 'task.queued', cursor: 'c', payload } as unknown as FeedEvent
    return { items: Array<FeedEvent>(perPage).fill(event), next: 'c', more: true }
  }
  const over = new AbortController()
  const feed = { read, more: () => assert.fail('there is more') }
  const engine = { follow: (ask: FeedQuery, how: Following) => follow(feed, ask, how) }
  const source = { engine, heartbeatSeconds: 15 }
  const ended = streamEvents(source, {}, to as unknown as ServerResponse, over.signal, () => {})
  t.after(async () => {
    over.abort()
    await ended
  })
  const asksIn = async (turns: number) => {
    for (let n = 0; n < turns; n++) await turn()
    return asked
  }
  return { to, ended, asksIn, take: () => takeOne() }
}

test('for a reader that takes nothing, no more of the feed is read', async t => {
  const { asksIn, take } = streaming(t)
  assert.equal(await asksIn(50), 1)
  take()
  assert.equal(await asksIn(50), 1)
  take()
  assert.equal(await asksIn(50), 2)
})

test('a reader that takes nothing for half a minute is cut off, and one that takes something is not', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { to, ended, asksIn, take } = streaming(t)
  await asksIn(50)
  for (let n = 0; n < 3; n++) {
    t.mock.timers.tick(29_999)
    take()
    await asksIn(50)
  }
  assert.equal(to.destroyed, false)
  t.mock.timers.tick(30_000)
  await ended
  assert.equal(to.destroyed, true)
})

test('for a reader that takes nothing, a bounded number of bytes is kept however large a page is', async t => {
  const event = 'x'.repeat(10_000)
  const { to, asksIn, take } = streaming(t, 100, event)
  await asksIn(50)
  // The first line has been written, and the reader reads nothing more.
  take()
  await asksIn(50)
  assert.ok(to.writableLength < 50_000, `${to.writableLength} bytes`)
})

test('a client that leaves before its stream begins is not waited for', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const left = new AbortController()
  async function* texts() {
    left.abort()
    yield 'first'
    yield 'second'
  }
  const to = Object.assign(new Writable({ highWaterMark: 1, write: () => {} }), { writeHead: () => {} })
  let isOver = false
  const head = { status: 200, headers: {} }
  void streamTexts(head, texts(), to as unknown as ServerResponse, left.signal, () => {}).then(() => {
    isOver = true
  })
  for (let n = 0; n < 50; n++) await turn()
  assert.equal(isOver, true)
})

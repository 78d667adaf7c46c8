import { Problem } from '../../kernel/problem.ts'
import { withoutUndefined } from '../../kernel/without-undefined.ts'
import type { PawlApi } from '../../protocol/operations.ts'
import { type FeedEvent, type FeedPage, type FeedQuery, mostLatest } from '../../protocol/tasks/tasks.ts'
import { showingCommand } from '../command.ts'
import { eventLine } from '../event-lines.ts'
import { findJobId } from '../find-id.ts'
import { styled } from '../styled-line.ts'
import { type FollowOptions, pause, retryUntilAvailable } from '../waiting.ts'

const defaultLines = 20
const pageSize = 10_000
const pollMs = 300

export const eventsTail = showingCommand({
  name: 'events tail',
  summary: 'Show the latest events; with -f, follow new ones.',
  details: 'With --json and -f, prints one JSON document per line.',
  flags: {
    follow: {
      kind: 'switch',
      short: 'f',
      summary: 'follow new events until interrupted; reconnects if the server restarts',
    },
    lines: {
      kind: 'number',
      short: 'n',
      value: 'N',
      summary: `start with this many of the latest events; default: ${defaultLines}`,
    },
    type: { kind: 'list', value: 'TYPE', summary: 'only this type, such as task.succeeded; may be repeated' },
    job: { kind: 'text', value: 'ID', summary: 'only this job, its stages and its tasks', completes: 'job' },
  },
  async run({ api, flags, output, json, stopSignal }) {
    const jobId = flags.job === undefined ? undefined : await findJobId(api, flags.job)
    const query: FeedQuery = withoutUndefined({ types: flags.type, jobId })
    const { items, next } = await latestOf(api, query, flags.lines ?? defaultLines)
    if (!flags.follow) return { data: items, show: () => items.map(eventLine) }
    const print = (event: FeedEvent) => (json ? output.printJsonLine(event) : output.print(eventLine(event)))
    for (const event of items) print(event)
    await follow(api, query, next, { output, print, signal: stopSignal() })
    return { data: undefined }
  },
})

type Latest = Pick<FeedPage, 'items' | 'next'>

/** The server searches only the recent part of the feed. If that has too few matching events, the whole feed is read. */
async function latestOf(api: PawlApi, query: FeedQuery, count: number): Promise<Latest> {
  const page = await api.events({ ...query, latest: Math.min(count, mostLatest) })
  return page.items.length < count ? readToEnd(api, query, count) : page
}

async function readToEnd(api: PawlApi, query: FeedQuery, keep: number): Promise<Latest> {
  let items: FeedEvent[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await api.events({ ...query, limit: pageSize, ...(cursor !== undefined && { cursor }) })
    items = [...items, ...page.items].slice(-keep)
    if (!page.more) return { items, next: page.next }
    cursor = page.next
  }
}

async function follow(api: PawlApi, query: FeedQuery, from: string, options: FollowOptions<FeedEvent>): Promise<void> {
  const { output, signal, print } = options
  const read = (cursor: string) =>
    api.events({ ...query, cursor }).catch((error: unknown) => {
      if (!(error instanceof Problem) || error.code !== 'CURSOR_GONE') throw error
      output.printNotice(styled('yellow', 'The store was restored or replaced. Continuing with new events.'))
      return api.events({ ...query, latest: 0 })
    })
  for (let cursor = from; ; ) {
    const page = await retryUntilAvailable(() => read(cursor), options)
    if (page === undefined) return
    for (const event of page.items) print(event)
    cursor = page.next
    if (!page.more) await pause(pollMs, signal)
  }
}

import { Problem } from '../../kernel/problem.ts'
import type { PawlApi } from '../../protocol/api.ts'
import { mostLatest } from '../../protocol/query-fields.ts'
import type { FeedEvent, FeedPage, FeedQuery } from '../../protocol/tasks/tasks.ts'
import { said } from '../asking.ts'
import { showingCommand } from '../command.ts'
import { eventLine } from '../events.ts'
import { findJobId } from '../find-id.ts'
import { styled } from '../line.ts'
import { patiently, pause, type Waiting } from '../patience.ts'

const usual = 20
const pageSize = 10_000
const lookMs = 300

export const eventsTail = showingCommand({
  name: 'events tail',
  summary: 'Show the latest events; with -f, follow new ones.',
  more: 'With --json and -f there is one document to a line.',
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
      summary: `start with this many of the latest events; default: ${usual}`,
    },
    type: { kind: 'list', value: 'TYPE', summary: 'only this type, such as task.succeeded; may be repeated' },
    job: { kind: 'text', value: 'ID', summary: 'only this job, its stages and its tasks' },
  },
  async run({ api, flags, screen, json, untilTold }) {
    const jobId = flags.job === undefined ? undefined : await findJobId(api, flags.job)
    const ask: FeedQuery = said({ types: flags.type, jobId })
    const { items, next } = await latestOf(api, ask, flags.lines ?? usual)
    if (!flags.follow) return { data: items, show: () => items.map(eventLine) }
    const tell = (event: FeedEvent) => (json ? screen.jsonLine(event) : screen.say(eventLine(event)))
    for (const event of items) tell(event)
    await follow(api, ask, next, { screen, tell, signal: untilTold() })
    return { data: undefined }
  },
})

type Latest = Pick<FeedPage, 'items' | 'next'>

/** The server looks back only so far. Where that does not find enough, all of the feed is read. */
async function latestOf(api: PawlApi, ask: FeedQuery, count: number): Promise<Latest> {
  const page = await api.events({ ...ask, latest: Math.min(count, mostLatest) })
  return page.items.length < count ? readToEnd(api, ask, count) : page
}

async function readToEnd(api: PawlApi, ask: FeedQuery, keep: number): Promise<Latest> {
  let items: FeedEvent[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await api.events({ ...ask, limit: pageSize, ...(cursor !== undefined && { cursor }) })
    items = [...items, ...page.items].slice(-keep)
    if (!page.more) return { items, next: page.next }
    cursor = page.next
  }
}

interface Following extends Waiting {
  tell(event: FeedEvent): void
}

async function follow(api: PawlApi, ask: FeedQuery, from: string, following: Following): Promise<void> {
  const { screen, signal, tell } = following
  const look = (cursor: string) =>
    api.events({ ...ask, cursor }).catch((error: unknown) => {
      if (!(error instanceof Problem) || error.code !== 'CURSOR_GONE') throw error
      screen.note(styled('yellow', 'The store was restored or moved. Continuing with new events.'))
      return api.events({ ...ask, latest: 0 })
    })
  for (let cursor = from; ; ) {
    const page = await patiently(() => look(cursor), following)
    if (page === undefined) return
    for (const event of page.items) tell(event)
    cursor = page.next
    if (!page.more) await pause(lookMs, signal)
  }
}

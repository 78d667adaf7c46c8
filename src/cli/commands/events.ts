import { Problem, willPass } from '../../kernel/problem.ts'
import type { PawlApi } from '../../protocol/api.ts'
import type { FeedEvent, FeedQuery } from '../../protocol/tasks.ts'
import { said } from '../asking.ts'
import { apiCommand } from '../command.ts'
import { eventLine } from '../events.ts'
import { findJobId } from '../find-id.ts'
import { styled } from '../line.ts'
import { pause } from '../patience.ts'
import type { Screen } from '../screen.ts'

const usual = 20
const pageSize = 10_000
const lookMs = 300
const longestPauseMs = 5000

export const eventsTail = apiCommand({
  name: 'events tail',
  says: 'Show the latest events, and with -f those that come.',
  more: 'With --json and -f there is one document to a line.',
  flags: {
    follow: { kind: 'switch', short: 'f', says: 'go on until it is told to end; a server that restarts is waited for' },
    lines: { kind: 'number', short: 'n', value: 'N', says: `begin with so many of the latest; default ${usual}` },
    type: { kind: 'list', value: 'TYPE', says: 'only of this type, as task.succeeded; may be repeated' },
    job: { kind: 'text', value: 'ID', says: 'only of this job, its stages and its tasks' },
  },
  async run({ api, flags, screen, json, untilTold }) {
    const jobId = flags.job === undefined ? undefined : await findJobId(api, flags.job)
    const ask: FeedQuery = said({ types: flags.type, jobId })
    const { latest, next } = await readToEnd(api, ask, flags.lines ?? usual)
    if (!flags.follow) return { data: latest, show: () => latest.map(eventLine) }
    const tell = (event: FeedEvent) => (json ? screen.jsonLine(event) : screen.say(eventLine(event)))
    for (const event of latest) tell(event)
    await follow(api, ask, next, { screen, tell, signal: untilTold() })
    return { data: undefined }
  },
})

/** The feed has only one direction, so its end is found by reading it. */
async function readToEnd(api: PawlApi, ask: FeedQuery, keep: number): Promise<{ latest: FeedEvent[]; next: string }> {
  let latest: FeedEvent[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await api.events({ ...ask, limit: pageSize, ...(cursor !== undefined && { cursor }) })
    latest = [...latest, ...page.items].slice(keep === 0 ? Number.POSITIVE_INFINITY : -keep)
    if (!page.more) return { latest, next: page.next }
    cursor = page.next
  }
}

interface Following {
  readonly screen: Screen
  readonly signal: AbortSignal
  tell(event: FeedEvent): void
}

async function follow(api: PawlApi, ask: FeedQuery, from: string, { screen, signal, tell }: Following): Promise<void> {
  let cursor = from
  for (let waitMs = lookMs; !signal.aborted; await pause(waitMs, signal)) {
    try {
      const page = await api.events({ ...ask, cursor })
      for (const event of page.items) tell(event)
      cursor = page.next
      waitMs = page.more ? 0 : lookMs
    } catch (error) {
      if (error instanceof Problem && error.code === 'CURSOR_GONE') {
        screen.note(styled('yellow', 'The store was restored or moved; going on from its end.'))
        cursor = (await readToEnd(api, ask, 0)).next
      } else if (!willPass(error)) throw error
      else if (waitMs <= lookMs) screen.note(styled('yellow', 'The server does not answer; still trying …'))
      waitMs = Math.min(Math.max(waitMs, lookMs) * 2, longestPauseMs)
    }
  }
}

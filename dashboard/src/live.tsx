/** Keeps the page up to date: an event makes the page read its data again, at most a few times a second. */
import { useQueryClient } from '@tanstack/react-query'
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from 'react'
import { jobLifecycle } from '../../src/kernel/job.ts'
import { statesOf } from '../../src/kernel/lifecycle.ts'
import { stageLifecycle } from '../../src/kernel/stage.ts'
import type { EventView } from '../../src/protocol/tasks/tasks.ts'
import { type Link, watchFeed } from './feed.ts'

interface LiveView {
  readonly link: Link
  /** Events since the page was opened, newest first. */
  readonly events: readonly EventView[]
}

const LiveContext = createContext<LiveView>({ link: 'joining', events: [] })
export const useLink = () => useContext(LiveContext).link
export const useLiveEvents = () => useContext(LiveContext).events

/** Task events are left out: there may be thousands a second. Pages that show tasks poll them instead. */
const types = [
  ...statesOf(jobLifecycle).map(state => `job.${state}`),
  ...statesOf(stageLifecycle).map(state => `stage.${state}`),
  ...['cancel_requested', 'priority_changed', 'metadata_changed', 'sealed', 'compensated'].map(what => `job.${what}`),
  ...['cancel_requested', 'hold_requested', 'approved', 'rejected', 'metadata_changed', 'sealed'].map(
    what => `stage.${what}`,
  ),
]

/** Queries that no event of a job or stage changes, or that are expensive and refresh on their own schedule. */
const notLive = new Set<unknown>(['doctor', 'stats', 'me', 'task-types', 'asked for by', 'job name', 'lineage'])

const readAgainMs = 300
const settleMs = 1500
const mostKept = 500

export function Live({ children }: { children: ReactNode }) {
  const queries = useQueryClient()
  const [link, setLink] = useState<Link>('joining')
  const [events, setEvents] = useState<readonly EventView[]>([])
  useEffect(() => {
    let isDue = false
    const readAgain = () => {
      isDue = false
      // Requests in progress continue: if each event restarted them, a slow answer would never arrive.
      void queries.invalidateQueries(
        { predicate: ({ queryKey: [about] }) => !notLive.has(about) },
        { cancelRefetch: false },
      )
    }
    let before: Link = 'joining'
    return watchFeed({
      types,
      onEvents(received) {
        if (!isDue) setTimeout(readAgain, readAgainMs)
        isDue = true
        setEvents(old => [...received.toReversed(), ...old].slice(0, mostKept))
      },
      onRefused: () => void queries.invalidateQueries({ queryKey: ['me'] }),
      onLink(now) {
        // Catch up on changes during the disconnection. After the first connection, wait: the data was just read.
        if (now === 'live' && before === 'joining') setTimeout(readAgain, settleMs)
        else if (now === 'live' && before !== 'live') readAgain()
        before = now
        setLink(now)
      },
    })
  }, [queries])
  const view = useMemo(() => ({ link, events }), [link, events])
  return <LiveContext.Provider value={view}>{children}</LiveContext.Provider>
}

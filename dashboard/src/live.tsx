/** Keeps what is shown as it is: what an event touches is read again, at most a few times a second. */
import { useQueryClient } from '@tanstack/react-query'
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from 'react'
import { jobLifecycle } from '../../src/kernel/job.ts'
import { statesOf } from '../../src/kernel/lifecycle.ts'
import { stageLifecycle } from '../../src/kernel/stage.ts'
import type { EventView } from '../../src/protocol/tasks/tasks.ts'
import { type Link, watchFeed } from './feed.ts'

interface LiveView {
  readonly link: Link
  /** What happened since the page was opened, the newest first. */
  readonly events: readonly EventView[]
}

const LiveContext = createContext<LiveView>({ link: 'joining', events: [] })
export const useLink = () => useContext(LiveContext).link
export const useHappenings = () => useContext(LiveContext).events

/** Of tasks there may be thousands a second: they are counted in their stages, and read while somebody looks at them. */
const types = [
  ...statesOf(jobLifecycle).map(state => `job.${state}`),
  ...statesOf(stageLifecycle).map(state => `stage.${state}`),
  ...['cancel_requested', 'priority_changed', 'metadata_changed', 'sealed', 'compensated'].map(what => `job.${what}`),
  ...['cancel_requested', 'hold_requested', 'approved', 'rejected', 'metadata_changed', 'sealed'].map(
    what => `stage.${what}`,
  ),
]

/** What no event of a job or a stage changes, or what is dear and asked in its own time. */
const apart = new Set<unknown>(['doctor', 'stats', 'me', 'task-types', 'asked for by', 'job name', 'lineage'])

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
      // One that is being asked is let be: asked anew each time, a slow answer would never come.
      void queries.invalidateQueries(
        { predicate: ({ queryKey: [about] }) => !apart.has(about) },
        { cancelRefetch: false },
      )
    }
    let before: Link = 'joining'
    return watchFeed({
      types,
      onEvents(came) {
        if (!isDue) setTimeout(readAgain, readAgainMs)
        isDue = true
        setEvents(old => [...came.toReversed(), ...old].slice(0, mostKept))
      },
      onRefused: () => void queries.invalidateQueries({ queryKey: ['me'] }),
      onLink(now) {
        // Whatever happened meanwhile: look anew. What has only just been read is left alone for a moment.
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

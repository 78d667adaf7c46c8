/** Keeps what is shown as it is: what an event touches is read again, at most a few times a second. */
import { useQueryClient } from '@tanstack/react-query'
import { createContext, type ReactNode, useContext, useEffect, useState } from 'react'
import { jobLifecycle } from '../../src/kernel/job.ts'
import { statesOf } from '../../src/kernel/lifecycle.ts'
import { stageLifecycle } from '../../src/kernel/stage.ts'
import { type Link, watchFeed } from './feed.ts'

const LinkContext = createContext<Link>('live')
export const useLink = () => useContext(LinkContext)

/** Of tasks there may be thousands a second: they are counted in their stages, and read while somebody looks at them. */
const types = [
  ...statesOf(jobLifecycle).map(state => `job.${state}`),
  ...statesOf(stageLifecycle).map(state => `stage.${state}`),
  ...['job.cancel_requested', 'job.priority_changed', 'job.metadata_changed', 'stage.approved', 'stage.rejected'],
]

const readAgainMs = 300

export function Live({ children }: { children: ReactNode }) {
  const queries = useQueryClient()
  const [link, setLink] = useState<Link>('live')
  useEffect(() => {
    let isDue = false
    const readAgain = () => {
      isDue = false
      void queries.invalidateQueries()
    }
    let before: Link = 'live'
    return watchFeed({
      types,
      onEvents() {
        if (!isDue) setTimeout(readAgain, readAgainMs)
        isDue = true
      },
      onLink(now) {
        // Whatever happened meanwhile: look anew.
        if (now === 'live' && before !== 'live') readAgain()
        before = now
        setLink(now)
      },
    })
  }, [queries])
  return <LinkContext.Provider value={link}>{children}</LinkContext.Provider>
}

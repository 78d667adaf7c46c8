/**
 * How many streams of events are open. Each holds memory for as long as its client stays, also if that never reads; so
 * there is a limit for all of them, and one for those of a key, lest one client take the places of all others.
 */
import { Problem } from '../kernel/problem.ts'
import type { Asker } from './authenticate.ts'

export interface StreamLimits {
  readonly maxStreams: number
  readonly maxStreamsPerKey: number
}

export interface Streams {
  /** Reserves a place for a stream. Call what it returns to give the place back. */
  open(asker: Pick<Asker, 'holder'>): () => void
}

export function limitStreams({ maxStreams, maxStreamsPerKey }: StreamLimits): Streams {
  const openOf = new Map<string, number>()
  let all = 0
  return {
    open({ holder }) {
      const mine = openOf.get(holder) ?? 0
      // Without keys all clients look alike, so only the limit for all of them counts.
      if (holder !== '' && mine >= maxStreamsPerKey) throw new Problem('STREAMS_OF_KEY', { most: maxStreamsPerKey })
      if (all >= maxStreams) throw new Problem('STREAMS_FULL', { most: maxStreams })
      all += 1
      openOf.set(holder, mine + 1)
      let isOpen = true
      return () => {
        if (!isOpen) return
        isOpen = false
        all -= 1
        const left = openOf.get(holder)! - 1
        if (left === 0) openOf.delete(holder)
        else openOf.set(holder, left)
      }
    },
  }
}

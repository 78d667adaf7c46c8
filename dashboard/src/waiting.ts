/** What waits for people, asked for in one place by all who show it. */
import { useQuery } from '@tanstack/react-query'
import { api } from './server.ts'

export const mostGates = 100

export function useWaiting() {
  return useQuery({
    queryKey: ['stages', 'waiting'],
    queryFn: () => api.stages({ state: 'waiting', limit: mostGates, total: true }),
    // A read that was under way when an event came may be older than it.
    refetchInterval: 5000,
  })
}

/** It looks at all that was ever set aside, so not too often. */
export function useDeadLetterGroups() {
  return useQuery({
    queryKey: ['troubles', 'dead letters'],
    queryFn: () => api.troubles({ state: 'dead_lettered' }),
    refetchInterval: 10_000,
  })
}

/** Queries for what waits for people; several parts of the page share them. */
import { useQuery } from '@tanstack/react-query'
import { api } from './server.ts'

export const mostGates = 100

export function useWaiting() {
  return useQuery({
    queryKey: ['stages', 'waiting'],
    queryFn: () => api.stages({ state: 'waiting', limit: mostGates, total: true }),
    // A read that was in progress when an event arrived may be older than the event.
    refetchInterval: 5000,
  })
}

/** This query reads all dead letters, so it is not repeated often. */
export function useDeadLetterGroups() {
  return useQuery({
    queryKey: ['troubles', 'dead letters'],
    queryFn: () => api.troubles({ state: 'dead_lettered' }),
    refetchInterval: 10_000,
  })
}

/** Queries that several parts of a page share, so that each is read once, with the largest page that the API allows. */
import { api } from '../server.ts'

const limit = 1000

export const queuesQuery = { queryKey: ['queues'], queryFn: () => api.queues({ limit }) }
export const workersQuery = { queryKey: ['workers'], queryFn: () => api.workers({ limit }) }
export const silentWorkersQuery = {
  queryKey: ['workers', 600],
  queryFn: () => api.workers({ withinSeconds: 600, limit }),
}

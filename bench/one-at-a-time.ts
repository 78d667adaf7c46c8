// Workers that claim one task, run it, and claim again, like shell scripts and workers of most dialects.

import { type Answer, type Ask, withLightClients } from './light-client.ts'
import { postgresMs, processorMs } from './processor-time.ts'

/** Runs one task. False: there was none. */
export type DoOne = (ask: Ask, claimer: number) => Promise<boolean>

export interface Cost {
  /** Tasks per second. */
  rate: number
  /** Milliseconds of processor time per task. */
  serverMs: number
  postgresMs: number
}

export interface Served {
  url: string
  pid: number
  /** The main process of PostgreSQL; 0 for the embedded store. */
  postgres: number
}

export async function workOneAtATime(
  served: Served,
  { claimers, count, doOne }: { claimers: number; count: number; doOne: DoOne },
): Promise<Cost> {
  const processor = () => [processorMs(served.pid), served.postgres === 0 ? 0 : postgresMs(served.postgres)] as const
  const [serverBefore, postgresBefore] = processor()
  const began = performance.now()
  let done = 0
  await withLightClients(served.url, claimers, async (ask, claimer) => {
    while (done < count && (await doOne(ask, claimer))) done += 1
  })
  const seconds = (performance.now() - began) / 1000
  const [serverAfter, postgresAfter] = processor()
  if (done < count) throw new Error(`${done} of ${count} tasks were done`)
  return {
    rate: done / seconds,
    serverMs: (serverAfter - serverBefore) / done,
    postgresMs: (postgresAfter - postgresBefore) / done,
  }
}

/** A claim that starts the task, then the report. */
export function ownRoutes(queue: string): DoOne {
  return async (ask, claimer) => {
    const { body } = await ask('POST', '/v1/claims', { worker: `w${claimer}`, queues: [queue], start: true })
    const [claimed] = body as { id: string; epoch: number }[]
    if (claimed === undefined) return false
    good(await ask('POST', `/v1/tasks/${claimed.id}/succeed`, { epoch: claimed.epoch }))
    return true
  }
}

export function good({ status, body }: Answer): unknown {
  if (status >= 300) throw new Error(`a request was answered with ${status}`)
  return body
}

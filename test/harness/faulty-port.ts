/** A worker's connection to the engine, with faults. */
import { Problem } from '../../src/kernel/problem.ts'
import type { SyncAnswer, SyncPort, SyncRequest } from '../../src/protocol/tasks/sync.ts'

export interface FaultyPort extends SyncPort {
  /** All requests, in order. */
  readonly asked: SyncRequest[]
}

interface Faults {
  /** True: this request is lost. */
  readonly losesRequest?: (request: SyncRequest) => boolean
  /** True: the request takes effect, but its answer is lost. */
  readonly losesAnswer?: (request: SyncRequest, answer: SyncAnswer) => boolean
}

export function faultyPort(engine: SyncPort, { losesRequest, losesAnswer }: Faults = {}): FaultyPort {
  const asked: SyncRequest[] = []
  return {
    asked,
    putTaskType: (type, settings) => engine.putTaskType(type, settings),
    async sync(request, signal) {
      asked.push(request)
      if (losesRequest?.(request)) throw new Problem('STORE_UNAVAILABLE', { why: 'the request was lost' })
      const answer = await engine.sync(request, signal)
      if (losesAnswer?.(request, answer)) throw new Problem('STORE_UNAVAILABLE', { why: 'the answer was lost' })
      return answer
    },
  }
}

/** True for the first `count` that fit. */
export function theFirst<Args extends unknown[]>(count: number, fits: (...args: Args) => boolean) {
  let left = count
  return (...args: Args): boolean => fits(...args) && left-- > 0
}

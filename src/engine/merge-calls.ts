/**
 * Merges calls that would each run a statement: those that arrive while a run is in progress share the next one. An
 * idle store runs a call at once, so no call waits for others to arrive, and runs grow with load.
 */
import { isTransient } from '../kernel/problem.ts'
import type { Sql } from '../store/driver/sql.ts'
import { storeFault } from '../store/driver/store-fault.ts'
import { StaleSchemas } from '../store/tasks/payload-schemas.ts'

/** Marks a call that did not fit into its run. It comes first in the next one. */
export const againFirst = Symbol('again first')

export interface MergeOptions<Request> {
  /** Maximum number of concurrent runs. With more, each is smaller. */
  readonly concurrentRuns: number
  /** Maximum size of a run. A single call may be larger. */
  readonly maxSize: number
  sizeOf(request: Request): number
  /** Only calls of the same group share a run. Default: all. */
  groupOf?(request: Request): string
  /** A run that takes longer, because it waits for a lock, no longer keeps others from starting. Default: no limit. */
  readonly slowMs?: number
}

interface PendingCall<Request, Answer> {
  readonly request: Request
  resolve(answer: Answer): void
  reject(error: unknown): void
}

interface Group<Request, Answer> {
  readonly waiting: PendingCall<Request, Answer>[]
  /** Runs that have not ended. */
  running: number
  /** Runs that no longer keep others from starting. */
  slow: number
  isScheduled: boolean
}

/**
 * Merges the calls of all callers that share the connections of a store. A call inside an open transaction of the only
 * connection is refused before it joins others: they would wait with it for that transaction.
 */
export function mergeByStore<Request, Answer>(
  run: (requests: readonly Request[], sql: Sql) => Promise<readonly (Answer | Error | typeof againFirst)[]>,
  options: MergeOptions<Request>,
): (sql: Sql, request: Request) => Promise<Answer> {
  const mergedCalls = new WeakMap<Sql, (request: Request) => Promise<Answer>>()
  return async (sql, request) => {
    sql.checkTurn()
    const call = mergedCalls.get(sql) ?? mergeCalls<Request, Answer>(requests => run(requests, sql), options)
    mergedCalls.set(sql, call)
    return call(request)
  }
}

/** Returns a function that answers one request. `run` answers several, in their order; an error rejects its call. */
export function mergeCalls<Request, Answer>(
  run: (requests: readonly Request[]) => Promise<readonly (Answer | Error | typeof againFirst)[]>,
  options: MergeOptions<Request>,
): (request: Request) => Promise<Answer> {
  const { concurrentRuns, maxSize, sizeOf, groupOf = () => '', slowMs } = options
  const groups = new Map<string, Group<Request, Answer>>()

  const isFull = (group: Group<Request, Answer>) => group.running - group.slow >= concurrentRuns

  /** Requests that the event loop reads together also share a run, so runs start once it has read all of them. */
  function schedule(name: string, group: Group<Request, Answer>): void {
    if (group.isScheduled || isFull(group)) return
    group.isScheduled = true
    setImmediate(() => {
      group.isScheduled = false
      while (group.waiting.length > 0 && !isFull(group)) void runNext(name, group)
      if (group.waiting.length === 0 && group.running === 0) groups.delete(name)
    })
  }

  async function runNext(name: string, group: Group<Request, Answer>): Promise<void> {
    const calls = nextCalls(group.waiting)
    group.running += 1
    let isSlow = false
    const becomeSlow = () => {
      isSlow = true
      group.slow += 1
      schedule(name, group)
    }
    const timer = slowMs === undefined ? undefined : setTimeout(becomeSlow, slowMs)
    group.waiting.unshift(...(await runCalls(calls)))
    clearTimeout(timer)
    group.running -= 1
    if (isSlow) group.slow -= 1
    schedule(name, group)
  }

  /** Takes at least one call, and together no more than fit into a run. */
  function nextCalls(waiting: PendingCall<Request, Answer>[]): PendingCall<Request, Answer>[] {
    let size = 0
    const beyond = waiting.findIndex(({ request }, index) => {
      size += sizeOf(request)
      return index > 0 && size > maxSize
    })
    return waiting.splice(0, beyond < 0 ? waiting.length : beyond)
  }

  /**
   * Returns the calls to run again. One call may make all fail, or wait for a row that another transaction has locked, so
   * each is then run alone. After an outage none is: their run may have taken effect.
   */
  async function runCalls(calls: readonly PendingCall<Request, Answer>[]): Promise<PendingCall<Request, Answer>[]> {
    try {
      const answers = await run(calls.map(({ request }) => request))
      return calls.filter((call, index) => {
        const answer = answers[index] as Answer | Error | typeof againFirst
        if (answer instanceof Error) call.reject(answer)
        else if (answer !== againFirst) call.resolve(answer)
        return answer === againFirst
      })
    } catch (error) {
      if (calls.length > 1 && (!isTransient(error) || storeFault(error) === 'locked')) {
        const again: PendingCall<Request, Answer>[] = []
        for (const call of calls) again.push(...(await runCalls([call])))
        return again
      }
      for (const call of calls) call.reject(error)
      return []
    }
  }

  return request =>
    new Promise((resolve, reject) => {
      const name = groupOf(request)
      const group = groups.get(name) ?? { waiting: [], running: 0, slow: 0, isScheduled: false }
      groups.set(name, group)
      group.waiting.push({ request, resolve, reject })
      schedule(name, group)
    })
}

/**
 * Writes requests together, all or none. If the schemas of some types are stale, the requests with these types are
 * answered with this error, and the others are written without them.
 */
export async function withoutStale<Request, Answer>(
  requests: readonly Request[],
  typesOf: (request: Request) => readonly string[],
  write: (requests: readonly Request[]) => Promise<readonly Answer[]>,
): Promise<(Answer | Error)[]> {
  if (requests.length === 0) return []
  try {
    return [...(await write(requests))]
  } catch (error) {
    if (!(error instanceof StaleSchemas)) throw error
    const isStale = (request: Request) => typesOf(request).some(type => error.types.includes(type))
    const answers = await withoutStale(
      requests.filter(request => !isStale(request)),
      typesOf,
      write,
    )
    return requests.map(request => (isStale(request) ? error : answers.shift()!))
  }
}

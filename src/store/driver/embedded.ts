/**
 * The embedded store: PGlite in a worker thread, so that a long statement does not delay heartbeats.
 *
 * There is one connection, so transactions run one after the other. It runs without fsync: acknowledged data survives
 * the death of the process, but not a power failure.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { Problem } from '../../kernel/problem.ts'
import { lockFolder } from './folder-lock.ts'
import { indexPlanSettings } from './plans.ts'
import { withSavepoints } from './savepoints.ts'
import type { Driver } from './sql.ts'
import { asProblem } from './store-fault.ts'

export interface StoreRequest {
  readonly n: number
  readonly text: string
  readonly values: readonly (string | null)[] | null
}

export interface StoreResponse {
  readonly n: number
  readonly fields?: readonly string[]
  readonly rows?: unknown[][]
  readonly error?: { message: string; code?: string; constraint?: string; detail?: string }
}

export interface Embedded {
  readonly driver: Driver
  close(): Promise<void>
}

/** Opens the store in `folder`, or in memory if no folder is given. */
export async function openEmbedded(folder: string | undefined, turnSeconds = 60): Promise<Embedded> {
  const unlock = folder === undefined ? () => {} : lockFolder(folder)
  const thread = new Worker(new URL(`./embedded-thread${extname(import.meta.url)}`, import.meta.url), {
    workerData: { folder },
  })
  const connection = connectTo(thread)
  try {
    for (const [name, value] of Object.entries(indexPlanSettings))
      await connection.request(`set ${name} = '${value}'`, null)
  } catch (error) {
    await thread.terminate()
    unlock()
    throw error
  }
  return {
    driver: serializedDriver(connection.request, turnSeconds),
    async close() {
      await connection.request('', null).catch(() => {})
      await thread.terminate()
      unlock()
    },
  }
}

type SendRequest = (text: string, values: readonly (string | null)[] | null) => Promise<StoreResponse>

function connectTo(thread: Worker): { request: SendRequest } {
  const waiting = new Map<number, { resolve(answer: StoreResponse): void; reject(error: Error): void }>()
  let next = 1
  let ended: Error | undefined
  thread.on('message', (answer: StoreResponse) => {
    const caller = waiting.get(answer.n)
    waiting.delete(answer.n)
    if (waiting.size === 0) thread.unref()
    if (answer.error === undefined) caller?.resolve(answer)
    else caller?.reject(asProblem(Object.assign(new Error(answer.error.message), answer.error)) as Error)
  })
  const end = (cause: Error) => {
    ended = new Problem('STORE_UNAVAILABLE', { why: cause.message }, cause)
    for (const { reject } of waiting.values()) reject(ended)
    waiting.clear()
  }
  thread.on('error', end)
  thread.on('exit', () => end(new Error('the embedded store was closed')))
  thread.unref()
  return {
    request: (text, values) =>
      new Promise((resolve, reject) => {
        if (ended !== undefined) return reject(ended)
        const n = next++
        waiting.set(n, { resolve, reject })
        // Only a pending request keeps the process alive.
        thread.ref()
        thread.postMessage({ n, text, values } satisfies StoreRequest)
      }),
  }
}

function serializedDriver(request: SendRequest, turnSeconds: number): Driver {
  // A transaction may start work that outlives it, so the mark is cleared when the transaction ends.
  const inside = new AsyncLocalStorage<{ isOpen: boolean }>()
  let last: Promise<unknown> = Promise.resolve()
  /**
   * Only the wait is bounded. Work that has begun is never abandoned, because there is no other connection to continue
   * with.
   */
  const turn = <T>(work: () => Promise<T>): Promise<T> => {
    if (inside.getStore()?.isOpen) return Promise.reject(new Problem('TRANSACTION_OPEN'))
    return new Promise<T>((resolve, reject) => {
      let isLate = false
      const end = setTimeout(() => {
        isLate = true
        reject(new Problem('STORE_BUSY', { why: `other transactions took more than ${turnSeconds} s` }))
      }, turnSeconds * 1000).unref()
      last = last.then(() => {
        clearTimeout(end)
        return isLate ? undefined : work().then(resolve, reject)
      })
    })
  }
  return {
    isTransaction: false,
    query: (text, values) => turn(() => query(request, text, values)),
    script: text => turn(async () => void (await request(text, null))),
    begin: work =>
      turn(async () => {
        await request('begin', null)
        const mark = { isOpen: true }
        try {
          const result = await inside.run(mark, () => work(transactionDriver(request)))
          await request('commit', null)
          return result
        } catch (error) {
          await request('rollback', null).catch(() => {})
          throw error
        } finally {
          mark.isOpen = false
        }
      }),
  }
}

function transactionDriver(request: SendRequest): Driver {
  return withSavepoints({
    query: (text, values) => query(request, text, values),
    script: async text => void (await request(text, null)),
  })
}

async function query(request: SendRequest, text: string, values: readonly (string | null)[]) {
  const { fields, rows } = await request(text, values)
  return { fields: fields ?? [], rows: rows ?? [] }
}

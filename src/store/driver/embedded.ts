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
import { threadFlags } from '../../kernel/thread-flags.ts'
import { type EmbeddedSession, type Exchange, openSession } from './embedded-session.ts'
import { lockFolder } from './folder-lock.ts'
import { indexPlanSettings } from './plans.ts'
import { checkCommit, type Driver, untilEnd, withSavepoints } from './sql.ts'
import { asProblem } from './store-fault.ts'

/** Messages of the database, or why there are none. */
export type StoreAnswer = Uint8Array<ArrayBuffer> | { readonly message: string; readonly code?: string }

export interface Embedded {
  readonly driver: Driver
  close(): Promise<void>
}

/** Opens the store in `folder`, or in memory if no folder is given. */
export async function openEmbedded(folder: string | undefined, turnSeconds = 60): Promise<Embedded> {
  const unlock = folder === undefined ? () => {} : lockFolder(folder)
  const thread = new Worker(new URL(`./embedded-thread${extname(import.meta.url)}`, import.meta.url), {
    workerData: { folder },
    execArgv: threadFlags,
  })
  const exchange = connectTo(thread)
  const session = openSession(exchange)
  try {
    await session.script(
      Object.entries(indexPlanSettings)
        .map(([name, value]) => `set ${name} = '${value}'`)
        .join('; '),
    )
  } catch (error) {
    await thread.terminate()
    unlock()
    throw error
  }
  return {
    driver: serializedDriver(session, turnSeconds),
    async close() {
      await exchange(new Uint8Array()).catch(() => {})
      await thread.terminate()
      unlock()
    },
  }
}

function connectTo(thread: Worker): Exchange {
  const waiting: { resolve(answer: Uint8Array): void; reject(error: Error): void }[] = []
  let ended: Error | undefined
  thread.on('message', (answer: StoreAnswer) => {
    const caller = waiting.shift()
    if (waiting.length === 0) thread.unref()
    if (answer instanceof Uint8Array) caller?.resolve(answer)
    else caller?.reject(asProblem(Object.assign(new Error(answer.message), answer)) as Error)
  })
  const end = (cause: Error) => {
    ended = new Problem('STORE_UNAVAILABLE', { why: cause.message }, cause)
    for (const { reject } of waiting.splice(0)) reject(ended)
  }
  thread.on('error', end)
  thread.on('exit', () => end(new Error('the embedded store was closed')))
  thread.unref()
  return messages =>
    new Promise((resolve, reject) => {
      if (ended !== undefined) return reject(ended)
      // Only a pending request keeps the process alive.
      if (waiting.push({ resolve, reject }) === 1) thread.ref()
      thread.postMessage(messages, [messages.buffer])
    })
}

function serializedDriver(session: EmbeddedSession, turnSeconds: number): Driver {
  // A transaction may start work that outlives it, so the mark is cleared when the transaction ends.
  const inside = new AsyncLocalStorage<{ isOpen: boolean }>()
  let last: Promise<unknown> = Promise.resolve()
  const checkTurn = () => {
    if (inside.getStore()?.isOpen) throw new Problem('TRANSACTION_OPEN')
  }
  /**
   * Only the wait is bounded. Work that has begun is never abandoned, because there is no other connection to continue
   * with.
   */
  const turn = async <T>(work: () => Promise<T>): Promise<T> => {
    checkTurn()
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
    checkTurn,
    query: (text, values) => turn(() => session.query(text, values)),
    script: text => turn(async () => void (await session.script(text))),
    begin: work =>
      turn(async () => {
        const mark = { isOpen: true }
        const transaction = openTransaction(session)
        const { statements, end } = untilEnd(transaction)
        try {
          const result = await inside.run(mark, () => work(withSavepoints(statements)))
          end()
          checkCommit(await transaction.end('commit'))
          return result
        } catch (error) {
          end()
          await transaction.end('rollback').catch(() => {})
          throw error
        } finally {
          mark.isOpen = false
        }
      }),
  }
}

/** Begins with its first statement, in one message. */
function openTransaction(session: EmbeddedSession) {
  let hasBegun = false
  const begin = () => {
    if (hasBegun) return undefined
    hasBegun = true
    return 'begin'
  }
  return {
    query: (text: string, values: readonly (string | null)[]) => session.query(text, values, begin()),
    script: async (text: string) => void (await session.script(text, begin())),
    end: async (how: 'commit' | 'rollback') => (hasBegun ? session.script(how) : undefined),
  }
}

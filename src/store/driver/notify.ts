import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { PoolerMode } from '../../kernel/pooler-mode.ts'
import { isBehindPooler } from './postgres.ts'
import type { Driver, Sql } from './sql.ts'

export interface Listening {
  readonly url: string
  /** The kind of pooler that may be between this process and the server. */
  readonly pooler: PoolerMode
}

/**
 * Announces new work to other processes with LISTEN and NOTIFY. One connection listens; sending uses the pool. Polling
 * remains authoritative.
 */
export function notifications(listening: Listening, driver: Driver, schema: string) {
  const channel = channelOf(schema)
  return {
    async send(queues: readonly string[]): Promise<void> {
      const text = JSON.stringify(queues)
      await driver.query('select pg_notify($1, $2)', [channel, text.length < 7000 ? text : '["*"]'])
    },
    listen(onQueues: (queues: readonly string[]) => void, signal: AbortSignal): void {
      if (listening.pooler !== 'transaction') void listenUntilAborted(listening, channel, onQueues, signal)
    },
  }
}

/** Timeout for answers of the server, and the interval of the checks whether it is still there. */
const answerMs = 10_000
const silenceMs = 10_000

/** Resolves to whether the promise settles in time. */
async function settlesWithin(promise: Promise<void>, ms: number): Promise<boolean> {
  const late = new AbortController()
  const isLate = sleep(ms, false, { signal: late.signal, ref: false }).catch(() => false)
  const over = await Promise.race([promise.then(() => true), isLate])
  late.abort()
  return over
}

/**
 * Listens until the signal aborts. A connection that breaks or stops answering is replaced; polling finds the work that
 * was announced in between. Behind a pooler it does not listen at all, because LISTEN would stay active on a connection
 * that others use.
 */
async function listenUntilAborted(
  { url, pooler }: Listening,
  channel: string,
  onQueues: (queues: readonly string[]) => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const client = new pg.Client({
      connectionString: url,
      application_name: 'pawl listen',
      keepAlive: true,
      connectionTimeoutMillis: answerMs,
      query_timeout: answerMs,
    })
    const broken = new Promise<void>(resolve => {
      client.on('error', () => resolve())
      client.on('end', () => resolve())
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    try {
      await client.connect()
      if (pooler === 'detect' && (await isBehindPooler(client, text => client.query(text)))) return void client.end()
      client.on('notification', ({ payload }) => onQueues(readQueues(payload)))
      await client.query(`listen "${channel}"`)
      // Earlier announcements were missed, so everyone looks once.
      onQueues(['*'])
      while (!(await settlesWithin(broken, silenceMs))) await client.query('select 1')
    } catch {
      await sleep(1000, undefined, { signal, ref: false }).catch(() => {})
    }
    // A connection that hangs does not end by itself.
    client.connection.stream.destroy()
  }
}

function readQueues(payload: string | undefined): readonly string[] {
  try {
    const queues: unknown = JSON.parse(payload ?? '')
    return Array.isArray(queues) ? queues.filter(queue => typeof queue === 'string') : ['*']
  } catch {
    return ['*']
  }
}

/** Announces new work from inside a transaction: the server delivers it when the transaction commits. */
export async function notifyOnCommit(sql: Sql, queues: readonly string[]): Promise<void> {
  const text = JSON.stringify(queues)
  await sql`select pg_notify(${channelOf(sql.schema)}, ${text.length < 7000 ? text : '["*"]'})`
}

const channelOf = (schema: string) => `pawl_${schema}`

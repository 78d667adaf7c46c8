import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { PoolerMode } from '../../kernel/pooler-mode.ts'
import { isBehindPooler } from './pooler.ts'
import type { Driver, Sql } from './sql.ts'

export interface Listening {
  readonly url: string
  /** What may be between us and the server at this URL. */
  readonly pooler: PoolerMode
}

/** The word of new work, over a server's LISTEN and NOTIFY: one connection that listens, the pool for sending. */
export function notifications(listening: Listening, driver: Driver, schema: string) {
  const channel = channelOf(schema)
  return {
    async send(queues: readonly string[]): Promise<void> {
      const text = JSON.stringify(queues)
      await driver.query('select pg_notify($1, $2)', [channel, text.length < 7000 ? text : '["*"]'])
    },
    listen(hear: (queues: readonly string[]) => void, signal: AbortSignal): void {
      if (listening.pooler !== 'transaction') void keepListening(listening, channel, hear, signal)
    },
  }
}

/** How long the server may take to answer, and how often it is asked whether it is still there. */
const answerMs = 10_000
const silenceMs = 10_000

/** Whether a promise resolves within the time. */
async function isOver(promise: Promise<void>, ms: number): Promise<boolean> {
  const late = new AbortController()
  const isLate = sleep(ms, false, { signal: late.signal, ref: false }).catch(() => false)
  const over = await Promise.race([promise.then(() => true), isLate])
  late.abort()
  return over
}

/**
 * Listens until told to stop. A connection that breaks, or that does not answer any more, is made again. What was missed
 * meanwhile, polling finds; and everything, where a pooler is in the way: there, LISTEN would stay behind on a connection
 * of others.
 */
async function keepListening(
  { url, pooler }: Listening,
  channel: string,
  hear: (queues: readonly string[]) => void,
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
      client.on('notification', ({ payload }) => hear(readQueues(payload)))
      await client.query(`listen "${channel}"`)
      // Whatever was said before is unknown, so everyone looks once.
      hear(['*'])
      while (!(await isOver(broken, silenceMs))) await client.query('select 1')
    } catch {
      await sleep(1000, undefined, { signal, ref: false }).catch(() => {})
    }
    // A connection that hangs would not end by itself.
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

/** The same word from inside a transaction: the server passes it on when that one commits, and only then. */
export async function notifyOnCommit(sql: Sql, queues: readonly string[]): Promise<void> {
  const text = JSON.stringify(queues)
  await sql`select pg_notify(${channelOf(sql.schema)}, ${text.length < 7000 ? text : '["*"]'})`
}

const channelOf = (schema: string) => `pawl_${schema}`

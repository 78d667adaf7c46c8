import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Sql } from './sql.ts'

/** The word of new work, over a server's LISTEN and NOTIFY: one connection that listens, the pool for sending. */
export function notifications(url: string, pool: pg.Pool, schema: string) {
  const channel = channelOf(schema)
  return {
    async send(queues: readonly string[]): Promise<void> {
      const text = JSON.stringify(queues)
      await pool.query('select pg_notify($1, $2)', [channel, text.length < 7000 ? text : '["*"]'])
    },
    listen(hear: (queues: readonly string[]) => void, signal: AbortSignal): void {
      void keepListening(url, channel, hear, signal)
    },
  }
}

/** Listens until told to stop; a connection that breaks is made again. What was missed meanwhile, polling finds. */
async function keepListening(
  url: string,
  channel: string,
  hear: (queues: readonly string[]) => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const client = new pg.Client({ connectionString: url, application_name: 'pawl listen', keepAlive: true })
    const broken = new Promise<void>(resolve => {
      client.on('error', () => resolve())
      client.on('end', () => resolve())
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    try {
      await client.connect()
      client.on('notification', ({ payload }) => hear(readQueues(payload)))
      await client.query(`listen "${channel}"`)
      // Whatever was said before is unknown, so everyone looks once.
      hear(['*'])
      await broken
    } catch {
      await sleep(1000, undefined, { signal, ref: false }).catch(() => {})
    }
    await client.end().catch(() => {})
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

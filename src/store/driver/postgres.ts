/**
 * The driver for a PostgreSQL server. Every wait is bounded: the server limits locks, statements and idle transactions,
 * and this side limits each statement as well, because a server that hangs or is unreachable limits nothing.
 */
import pg from 'pg'
import type { PoolerMode } from '../../kernel/pooler-mode.ts'
import { columnParser } from './column-parsers.ts'
import { describeStatement, typeNames } from './describe.ts'
import { indexPlanSettings } from './plans.ts'
import { type Bounds, checkCommit, type Driver, untilEnd, withSavepoints } from './sql.ts'
import { asProblem, isBroken } from './store-fault.ts'

export interface PostgresOptions {
  readonly connections: number
  /** Named statements are planned once per connection. Turn this off for poolers that cannot keep them. */
  readonly prepare: boolean
  readonly bounds: Required<Bounds>
  /** How long to wait for a connection. Default 10. */
  readonly connectionSeconds?: number
  /** Default: detect. */
  readonly pooler?: PoolerMode
}

/** A connection that hangs is abandoned soon after the statement's timeout, so work continues within 15 seconds. */
export const defaultBounds: Required<Bounds> = { statementSeconds: 10, lockSeconds: 3, idleSeconds: 10 }
const defaultConnectionSeconds = 10
/**
 * The server cancels a statement that takes too long. If its answer is missing for this much longer, the connection is
 * dead.
 */
const spareSeconds = 2

interface Queryable {
  query(config: object): Promise<{ command?: string; fields: { name: string }[]; rows: unknown[][] }>
}

const parsers: pg.CustomTypesConfig = { getTypeParser: columnParser as typeof pg.types.getTypeParser }

export type Pools = ReturnType<typeof openPools>

/** Opens the connections of one engine. */
export function openPools(url: string, options: PostgresOptions) {
  const { pool, driver } = postgresPool(url, options)
  const separate = postgresPool(url, { ...options, connections: 1, prepare: false })
  const probe = postgresPool(url, { ...options, connections: 1, prepare: false })
  const onSeparate = <T>(ask: (client: pg.PoolClient) => Promise<T>) =>
    withClient(separate.pool, client => withDeadline(client, () => ask(client), options.bounds.statementSeconds))
  return {
    pool,
    driver,
    /** A separate connection for work that must not wait for the others. */
    separate: separate.driver,
    /** The types of statements, for transactions of other libraries. */
    types: {
      describe: (text: string) => onSeparate(client => describeStatement(client, text)),
      namesOf: (types: readonly number[]) => onSeparate(client => typeNames(client, types)),
      parserFor: columnParser,
    },
    /** Another one, open only while it checks whether the store is ready. */
    probe: probe.driver,
    close: async () => void (await Promise.all([pool.end(), separate.pool.end(), probe.pool.end()])),
  }
}

/** Whether there is a pooler between the pool and its server. Undefined before the first connection. */
interface PoolerState {
  isPooled: boolean | undefined
}

function postgresPool(url: string, options: PostgresOptions): { pool: pg.Pool; driver: Driver } {
  const { connectionSeconds = defaultConnectionSeconds, bounds, pooler = 'detect' } = options
  const poolerState: PoolerState = { isPooled: pooler === 'detect' ? undefined : pooler === 'transaction' }
  const pool = new pg.Pool({
    connectionString: url,
    max: options.connections,
    application_name: 'pawl',
    connectionTimeoutMillis: ms(connectionSeconds),
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: parsers,
    onConnect: async client => {
      const ask = (text: string) => bounded(client, { text }, connectionSeconds)
      poolerState.isPooled ??= await isBehindPooler(client, ask)
      if (!poolerState.isPooled) await ask(settings(bounds, 'session'))
    },
  })
  // An idle connection that breaks is replaced at the next query; without a listener it would end the process.
  pool.on('error', () => {})
  // The same applies to a connection that breaks at another moment, such as between two statements. Its user gets the
  // error anyway.
  pool.on('connect', client => client.on('error', () => {}))
  return { pool, driver: poolDriver(pool, options, poolerState) }
}

/** The plan settings and timeouts as SET statements: for the session, or local to a transaction. */
function settings(bounds: Bounds, scope: 'session' | 'local'): string {
  const all = { ...indexPlanSettings, ...timeouts(bounds) }
  return Object.entries(all)
    .map(([name, value]) => `set ${scope} ${name} = '${value}'`)
    .join('; ')
}

function timeouts({ statementSeconds, lockSeconds, idleSeconds }: Bounds): Record<string, string> {
  return {
    ...(statementSeconds !== undefined && { statement_timeout: `${ms(statementSeconds)}ms` }),
    ...(lockSeconds !== undefined && { lock_timeout: `${ms(lockSeconds)}ms` }),
    ...(idleSeconds !== undefined && { idle_in_transaction_session_timeout: `${ms(idleSeconds)}ms` }),
  }
}

/**
 * The text that begins a transaction with its timeouts, in one round trip. Behind a pooler the session has no settings,
 * so all of them are included.
 */
function beginWith(usual: Bounds, own: Bounds, isPooled: boolean): string {
  if (isPooled) return `begin; ${settings({ ...usual, ...own }, 'local')}`
  const changed = Object.entries(timeouts(own)).map(([name, value]) => `; set local ${name} = '${value}'`)
  return `begin${changed.join('')}`
}

const ms = (seconds: number) => Math.max(1, Math.round(seconds * 1000))

function poolDriver(pool: pg.Pool, { prepare, bounds }: PostgresOptions, poolerState: PoolerState): Driver {
  const named = statementNames()
  const nameOf = (text: string) => (prepare && !poolerState.isPooled ? named(text) : undefined)
  const usual = bounds.statementSeconds
  const begin = <T>(client: pg.PoolClient, work: (driver: Driver) => Promise<T>, own: Bounds) => {
    const seconds = own.statementSeconds ?? usual
    return inTransaction(client, nameOf, work, seconds, beginWith(bounds, own, poolerState.isPooled === true))
  }
  return {
    isTransaction: false,
    checkTurn() {},
    query: (text, values) =>
      withClient(pool, client =>
        poolerState.isPooled
          ? begin(client, driver => driver.query(text, values), {})
          : send(client, nameOf, text, values, usual),
      ),
    script: text => withClient(pool, async client => void (await bounded(client, { text }, usual))),
    begin: (work, own = {}) => withClient(pool, client => begin(client, work, own)),
  }
}

/** Connections with a transaction that could not be ended. */
const unusable = new WeakSet<pg.PoolClient>()

/** A connection that broke or hangs is discarded. Any other returns to the pool. */
async function withClient<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  let client: pg.PoolClient | undefined
  let broken: Error | undefined
  try {
    client = await pool.connect()
    return await work(client)
  } catch (error) {
    if (isBroken(error)) broken = error as Error
    throw asProblem(error)
  } finally {
    client?.release(broken ?? (client !== undefined && unusable.has(client)))
  }
}

async function inTransaction<T>(
  client: pg.PoolClient,
  nameOf: NameOf,
  work: (driver: Driver) => Promise<T>,
  statementSeconds: number,
  beginning: string,
): Promise<T> {
  const ask = (text: string) => bounded(client, { text }, statementSeconds)
  const { statements, end } = untilEnd({
    query: (text, values) => named(() => send(client, nameOf, text, values, statementSeconds)),
    script: text => named(async () => void (await ask(text))),
  })
  try {
    await ask(beginning)
    const result = await work(withSavepoints(statements))
    end()
    checkCommit((await ask('commit')).command)
    return result
  } catch (error) {
    end()
    // A connection that cannot roll back would pass its transaction on to its next user.
    if (!isBroken(error)) await ask('rollback').catch(() => void unusable.add(client))
    throw error
  }
}

/** Turns errors of the store into problems, so that work in a transaction knows which of them to retry. */
async function named<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw asProblem(error)
  }
}

async function send(
  client: pg.PoolClient,
  nameOf: NameOf,
  text: string,
  values: readonly (string | null)[],
  seconds: number,
) {
  const name = nameOf(text)
  const config = { text, values, rowMode: 'array', types: parsers, ...(name !== undefined && { name }) }
  const { fields, rows } = await bounded(client, config, seconds)
  return { fields: fields.map(field => field.name), rows }
}

/**
 * Sends a statement with a timeout on this side as well. When it expires, the socket is destroyed, because a late
 * answer belongs to nobody. It is then unknown whether the statement took effect, so only statements with an
 * idempotency key or a fence are repeated.
 */
function bounded(client: pg.ClientBase, config: object, seconds: number): ReturnType<Queryable['query']> {
  return withDeadline(client, () => (client as unknown as Queryable).query(config), seconds)
}

function withDeadline<T>(client: pg.ClientBase, ask: () => Promise<T>, seconds: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = setTimeout(
      () => {
        reject(Object.assign(new Error(`no answer within ${seconds + spareSeconds} s`), { code: 'ETIMEDOUT' }))
        socketOf(client).destroy()
      },
      (seconds + spareSeconds) * 1000,
    )
    ask()
      .then(resolve, reject)
      .finally(() => clearTimeout(end))
  })
}

function socketOf(client: pg.ClientBase): { destroy(): void } {
  return (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream
}

type NameOf = (text: string) => string | undefined

function statementNames(): (text: string) => string {
  const names = new Map<string, string>()
  return text => {
    const name = names.get(text) ?? `pawl_${names.size}`
    names.set(text, name)
    return name
  }
}

/**
 * Detects a pooler such as PgBouncer in transaction mode, which runs each transaction on any free server connection.
 * Session settings would leak to other applications, and a prepared statement is unknown on the next connection. So
 * behind a pooler every statement runs in a transaction that applies its own settings, and no statement is named.
 *
 * A pooler reports a process id of its own; the server knows the real one.
 */
export async function isBehindPooler(client: pg.ClientBase, ask: (text: string) => Promise<{ rows: unknown[] }>) {
  const reportedId = (client as unknown as { processID: number | null }).processID
  const { rows } = await ask('select pg_backend_pid() as pid')
  return (rows[0] as { pid: number }).pid !== reportedId
}

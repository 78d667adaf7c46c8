/**
 * The driver for a PostgreSQL server. Nothing waits without a bound: locks, statements and idle transactions are bounded
 * by the server, and each statement also by this side, because a server that is frozen or cut off bounds nothing.
 */
import pg from 'pg'
import type { PoolerMode } from '../../kernel/pooler-mode.ts'
import { narrowPlans } from './plans.ts'
import { isBehindPooler } from './pooler.ts'
import { withSavepoints } from './savepoints.ts'
import type { Bounds, Driver } from './sql.ts'
import { asProblem, isBroken } from './store-fault.ts'

export interface PostgresOptions {
  readonly connections: number
  /** Named statements are planned once per connection; off for poolers that cannot keep them. */
  readonly prepare: boolean
  readonly bounds: Required<Bounds>
  /** How long to wait for a connection. Default 10. */
  readonly connectionSeconds?: number
  /** Default: detect. */
  readonly pooler?: PoolerMode
}

/** A connection that hangs is given up after the statement's bound, so work goes on within 15 seconds. */
export const usualBounds: Required<Bounds> = { statementSeconds: 10, lockSeconds: 3, idleSeconds: 10 }
const usualConnectionSeconds = 10
/** The server ends a statement that takes too long. If that is not heard of so much later, the connection is dead. */
const spareSeconds = 2

interface Queryable {
  query(config: object): Promise<{ fields: { name: string }[]; rows: unknown[][] }>
}

const { builtins } = pg.types
const parsers: pg.CustomTypesConfig = {
  // bigint counts and transaction ids stay far below 2^53.
  getTypeParser: ((oid: number, format: 'text') =>
    oid === builtins.INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
}

/** The connections of one engine. */
export interface Pools {
  readonly pool: pg.Pool
  readonly driver: Driver
  /** A connection of its own for work that must not wait for the others. */
  readonly aside: Driver
  /** Another, open only while it is used, to find out whether the store is ready. */
  readonly probe: Driver
  close(): Promise<void>
}

export function openPools(url: string, options: PostgresOptions): Pools {
  const { pool, driver } = postgresPool(url, options)
  const aside = postgresPool(url, { ...options, connections: 1, prepare: false })
  const probe = postgresPool(url, { ...options, connections: 1, prepare: false })
  const close = async () => void (await Promise.all([pool.end(), aside.pool.end(), probe.pool.end()]))
  return { pool, driver, aside: aside.driver, probe: probe.driver, close }
}

/** What a pool has found out about the way to its server: undefined before the first connection. */
interface Way {
  isPooled: boolean | undefined
}

function postgresPool(url: string, options: PostgresOptions): { pool: pg.Pool; driver: Driver } {
  const { connectionSeconds = usualConnectionSeconds, bounds, pooler = 'detect' } = options
  const way: Way = { isPooled: pooler === 'detect' ? undefined : pooler === 'transaction' }
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
      way.isPooled ??= await isBehindPooler(client, ask)
      if (!way.isPooled) await ask(settings(bounds, 'session'))
    },
  })
  // An idle connection that breaks is replaced at the next query; without a listener it would end the process.
  pool.on('error', () => {})
  // So would one that breaks at any other moment, such as between two statements. Whoever uses it hears of it anyway.
  pool.on('connect', client => client.on('error', () => {}))
  return { pool, driver: poolDriver(pool, options, way) }
}

/** Plans and bounds as statements; `local`: for the transaction only. */
function settings(bounds: Bounds, scope: 'session' | 'local'): string {
  const all = { ...narrowPlans, ...timeouts(bounds) }
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

/** For one transaction, in the round trip that begins it. Behind a pooler the session has set nothing before. */
function beginWith(usual: Bounds, own: Bounds, isPooled: boolean): string {
  if (isPooled) return `begin; ${settings({ ...usual, ...own }, 'local')}`
  const changed = Object.entries(timeouts(own)).map(([name, value]) => `; set local ${name} = '${value}'`)
  return `begin${changed.join('')}`
}

const ms = (seconds: number) => Math.max(1, Math.round(seconds * 1000))

function poolDriver(pool: pg.Pool, { prepare, bounds }: PostgresOptions, way: Way): Driver {
  const named = statementNames()
  const nameOf = (text: string) => (prepare && !way.isPooled ? named(text) : undefined)
  const usual = bounds.statementSeconds
  const begin = <T>(client: pg.PoolClient, work: (driver: Driver) => Promise<T>, own: Bounds) => {
    const seconds = own.statementSeconds ?? usual
    return inTransaction(client, nameOf, work, seconds, beginWith(bounds, own, way.isPooled === true))
  }
  return {
    isTransaction: false,
    query: (text, values) =>
      withClient(pool, client =>
        way.isPooled
          ? begin(client, driver => driver.query(text, values), {})
          : send(client, nameOf, text, values, usual),
      ),
    script: text => withClient(pool, async client => void (await bounded(client, { text }, usual))),
    begin: (work, own = {}) => withClient(pool, client => begin(client, work, own)),
  }
}

/** Connections that are in a transaction that could not be ended. */
const unusable = new WeakSet<pg.PoolClient>()

/** A connection that broke or hangs is thrown away; any other goes back to the pool. */
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
  const driver = withSavepoints({
    query: (text, values) => named(() => send(client, nameOf, text, values, statementSeconds)),
    script: text => named(async () => void (await ask(text))),
  })
  try {
    await ask(beginning)
    const result = await work(driver)
    await ask('commit')
    return result
  } catch (error) {
    // A connection that cannot even roll back would take its transaction along to whoever gets it next.
    if (!isBroken(error)) await ask('rollback').catch(() => void unusable.add(client))
    throw error
  }
}

/** Names what is wrong with the store, so that the work in a transaction knows what is worth repeating. */
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
 * A statement with an end on this side, too. If the end is missed, the socket is destroyed: what would still come over it
 * belongs to nobody. Whether the statement was carried out is unknown then, so only what has a key or a fence is
 * repeated.
 */
function bounded(client: pg.ClientBase, config: object, seconds: number): ReturnType<Queryable['query']> {
  return new Promise((resolve, reject) => {
    const end = setTimeout(
      () => {
        reject(Object.assign(new Error(`no answer within ${seconds + spareSeconds} s`), { code: 'ETIMEDOUT' }))
        socketOf(client).destroy()
      },
      (seconds + spareSeconds) * 1000,
    )
    const asked = (client as unknown as Queryable).query(config)
    asked.then(resolve, reject).finally(() => clearTimeout(end))
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

import pg from 'pg'
import { narrowPlans } from './plans.ts'
import { withSavepoints } from './savepoints.ts'
import type { Driver } from './sql.ts'
import { asProblem, isBroken } from './store-fault.ts'

export interface PostgresOptions {
  readonly connections: number
  /** Named statements are planned once per connection; off for poolers that cannot keep them. */
  readonly prepare: boolean
}

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
  close(): Promise<void>
}

export function openPools(url: string, options: PostgresOptions): Pools {
  const { pool, driver } = postgresPool(url, options)
  const aside = postgresPool(url, { connections: 1, prepare: false })
  return {
    pool,
    driver,
    aside: aside.driver,
    close: async () => void (await Promise.all([pool.end(), aside.pool.end()])),
  }
}

function postgresPool(url: string, options: PostgresOptions): { pool: pg.Pool; driver: Driver } {
  const pool = new pg.Pool({
    connectionString: url,
    max: options.connections,
    application_name: 'pawl',
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    types: parsers,
    onConnect: async client => void (await client.query(narrowPlans)),
  })
  // An idle connection that breaks is replaced at the next query; without a listener it would end the process.
  pool.on('error', () => {})
  return { pool, driver: poolDriver(pool, statementNames(options.prepare)) }
}

function poolDriver(pool: pg.Pool, nameOf: NameOf): Driver {
  return {
    isTransaction: false,
    query: (text, values) => send(pool as unknown as Queryable, nameOf, text, values),
    script: text => guarded(async () => void (await pool.query(text))),
    async begin(work) {
      const client = await guarded(() => pool.connect())
      let broken: Error | undefined
      // A connection that breaks between two statements fails the next one; without a listener it would end the process.
      const heard = () => {}
      client.on('error', heard)
      try {
        return await inTransaction(client as unknown as Queryable, nameOf, work)
      } catch (error) {
        if (isBroken(error)) broken = error as Error
        throw error
      } finally {
        client.release(broken)
        client.off('error', heard)
      }
    },
  }
}

async function inTransaction<T>(client: Queryable, nameOf: NameOf, work: (driver: Driver) => Promise<T>): Promise<T> {
  await guarded(() => client.query({ text: 'begin' }))
  try {
    const result = await work(transactionDriver(client, nameOf))
    await guarded(() => client.query({ text: 'commit' }))
    return result
  } catch (error) {
    await client.query({ text: 'rollback' }).catch(() => {})
    throw error
  }
}

function transactionDriver(client: Queryable, nameOf: NameOf): Driver {
  return withSavepoints({
    query: (text, values) => send(client, nameOf, text, values),
    script: text => guarded(async () => void (await client.query({ text }))),
  })
}

async function send(client: Queryable, nameOf: NameOf, text: string, values: readonly (string | null)[]) {
  const name = nameOf(text)
  const config = { text, values, rowMode: 'array', types: parsers, ...(name !== undefined && { name }) }
  const { fields, rows } = await guarded(() => client.query(config))
  return { fields: fields.map(field => field.name), rows }
}

type NameOf = (text: string) => string | undefined

function statementNames(prepare: boolean): NameOf {
  const names = new Map<string, string>()
  return text => {
    if (!prepare) return undefined
    const name = names.get(text) ?? `pawl_${names.size}`
    names.set(text, name)
    return name
  }
}

/** Names what is wrong with the store, so that callers know what is worth repeating. */
async function guarded<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw asProblem(error)
  }
}

/** A fresh engine per test, on a schema of its own, with a clock that the test moves. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { TestContext } from 'node:test'
import { type Engine, openEngine, type PawlOptions } from '../../src/engine/engine.ts'
import type { SyncAnswer, SyncRequest } from '../../src/protocol/tasks/sync.ts'
import type { Sql } from '../../src/store/driver/sql.ts'
import { type DatabaseName, database } from './databases.ts'
import { describeSchema, dropSchema, returnSchema, takeSchema } from './schemas.ts'
import { sharedStore } from './stores.ts'

export interface Fresh {
  readonly engine: Engine
  readonly sql: Sql
  readonly schema: string
  /** Undefined on the embedded store. */
  readonly url: string | undefined
  /** Moves the database's clock. Nothing sleeps. */
  advance(seconds: number): Promise<void>
  /** One sync of a simple worker without a session. */
  sync(request: Partial<SyncRequest>): Promise<SyncAnswer>
}

export interface FreshOptions extends Omit<PawlOptions, 'database' | 'folder' | 'schema' | 'store'> {
  /** Default: the database that the file runs on. */
  readonly database?: DatabaseName
  /** The integrity rules are checked when the test ends. Set this in tests that write to the tables themselves. */
  readonly rules?: 'broken on purpose'
}

export async function fresh(t: TestContext, options: FreshOptions = {}): Promise<Fresh> {
  const { rules, database: named, ...rest } = options
  const store = await sharedStore(named ?? database())
  const used = await takeSchema(store.driver)
  const schema = used?.name ?? `t_${randomBytes(6).toString('hex')}`
  const engine = await engineOn(store, schema, rest)
  const { sql } = engine.context
  const mayStay = rules === undefined && options.migrate !== false
  const known = used ?? (mayStay ? await describeSchema(store.driver, schema) : undefined)
  let moved = 0
  t.after(async () => {
    let isSound = false
    try {
      if (rules === undefined) assert.deepEqual(await engine.brokenRules(), [])
      isSound = true
    } finally {
      await engine.close()
      if (known !== undefined && mayStay && isSound) await returnSchema(store.driver, known)
      else await dropSchema(store.driver, schema)
    }
  })
  return {
    engine,
    sql,
    schema,
    url: store.url,
    async advance(seconds) {
      moved += seconds
      await sql.script(`
        create or replace function pawl.clock() returns timestamptz language sql stable parallel safe as
          $$ select now() + interval '${moved} seconds' $$`)
    },
    sync: request => engine.sync({ worker: 'w', ...request }),
  }
}

/** An engine whose test sets up its connections has a pool of its own. */
async function engineOn(
  store: Awaited<ReturnType<typeof sharedStore>>,
  schema: string,
  options: PawlOptions,
): Promise<Engine> {
  const isOwn = options.connections !== undefined || options.prepare !== undefined
  if (isOwn && store.url !== undefined) return openEngine({ ...options, schema, database: store.url })
  return openEngine({ ...options, schema, store: store.open(schema) })
}

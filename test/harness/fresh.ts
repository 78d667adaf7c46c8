/** A fresh engine per test, on a schema of its own, with a clock that the test moves. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { TestContext } from 'node:test'
import { type Pawl, type PawlOptions, pawl } from '../../src/engine/engine.ts'
import type { SyncAnswer, SyncRequest } from '../../src/protocol/sync.ts'
import { openEmbedded } from '../../src/store/embedded.ts'
import { makeSql, type Sql } from '../../src/store/sql.ts'
import { type DatabaseName, serverUrl } from './databases.ts'
import { leaveSchema, portrayed, takeSchema } from './schemas.ts'

export interface Fresh {
  readonly engine: Pawl
  readonly sql: Sql
  readonly schema: string
  /** Undefined on the embedded store. */
  readonly url: string | undefined
  /** Moves the database's clock. Nothing sleeps. */
  advance(seconds: number): Promise<void>
  /** One sync of a simple worker without a session. */
  sync(request: Partial<SyncRequest>): Promise<SyncAnswer>
}

const memory = new Map<string, ReturnType<typeof openEmbedded>>()

/**
 * The rules are checked when the test ends: after every story they must hold. `rules: 'broken on purpose'` is for tests
 * that write to the tables themselves.
 */
export async function fresh(
  t: TestContext,
  database: DatabaseName = 'postgres 18',
  options: PawlOptions & { rules?: 'broken on purpose' } = {},
): Promise<Fresh> {
  const { rules, ...rest } = options
  const url = database === 'embedded' ? undefined : await serverUrl(database === 'postgres 15' ? 15 : 18)
  const used = url === undefined ? undefined : await takeSchema(url)
  const schema = used?.name ?? `t_${randomBytes(6).toString('hex')}`
  const engine = url === undefined ? await sharedEmbedded(schema, rest) : await pawl({ ...rest, database: url, schema })
  const { sql } = engine.context
  const mayStay = url !== undefined && rules === undefined && options.migrate !== false
  const known = used ?? (mayStay ? await portrayed(url, schema) : undefined)
  let moved = 0
  t.after(async () => {
    let isSound = false
    try {
      if (rules === undefined) assert.deepEqual(await engine.brokenRules(), [])
      isSound = true
    } finally {
      if (known !== undefined && mayStay && isSound) leaveSchema(url, known)
      else await sql.script(`drop schema "${schema}" cascade`)
      await engine.close()
    }
  })
  return {
    engine,
    sql,
    schema,
    url,
    async advance(seconds) {
      moved += seconds
      await sql.script(`
        create or replace function pawl.clock() returns timestamptz language sql stable parallel safe as
          $$ select now() + interval '${moved} seconds' $$`)
    },
    sync: request => engine.sync({ worker: 'w', ...request }),
  }
}

/** The embedded store takes a second to open, so the tests of a process share one. */
async function sharedEmbedded(schema: string, options: PawlOptions): Promise<Pawl> {
  const opening = memory.get('memory') ?? openEmbedded(undefined)
  memory.set('memory', opening)
  const { driver } = await opening
  return pawl({ ...options, schema, store: { sql: makeSql(driver, schema), close: async () => {} } })
}

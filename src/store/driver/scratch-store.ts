/**
 * In-memory stores for tests. One store is shared by the process, and each caller gets a schema of its own: opening a
 * store takes a second, creating a schema a fraction of that. The memory is released when the store has been unused for
 * a while.
 */
import { type Embedded, openEmbedded } from './embedded.ts'
import { type Driver, makeSql, type Sql } from './sql.ts'

export interface Scratch {
  readonly sql: Sql
  /** The same without the calls of `changed`, for code that only checks whether something has changed. */
  readonly quiet: Sql
  /** Drops the schema. */
  close(): Promise<void>
}

const idleMs = 2000
const shared: { store?: Promise<Embedded>; users: number; idle?: NodeJS.Timeout } = { users: 0 }

/** Opens a store whose schema does not exist yet. `changed` is called after every statement or transaction. */
export async function openScratch(schema: string, changed: () => void): Promise<Scratch> {
  const { driver } = await join()
  const quiet = makeSql(driver, schema)
  return {
    sql: makeSql(watched(driver, changed), schema),
    quiet,
    async close() {
      await quiet.script(`drop schema if exists "${schema}" cascade`)
      leave()
    },
  }
}

function join(): Promise<Embedded> {
  shared.users += 1
  clearTimeout(shared.idle)
  shared.store ??= openEmbedded(undefined)
  return shared.store
}

function leave(): void {
  shared.users -= 1
  if (shared.users > 0) return
  shared.idle = setTimeout(() => {
    const { store } = shared
    delete shared.store
    void store?.then(({ close }) => close())
  }, idleMs)
  shared.idle.unref()
}

function watched(driver: Driver, changed: () => void): Driver {
  return {
    isTransaction: driver.isTransaction,
    checkTurn: () => driver.checkTurn(),
    query: (text, values) => driver.query(text, values).finally(changed),
    script: text => driver.script(text).finally(changed),
    begin: work => driver.begin(work).finally(changed),
  }
}

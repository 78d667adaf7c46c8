/**
 * The stores that the tests of a process share, one per database. Connections stay open between tests, because the
 * first claim on a new connection takes thirty times as long as the next. Each test has a schema of its own.
 */
import { type Store, serverStore } from '../../src/engine/open-store.ts'
import { openEmbedded } from '../../src/store/driver/embedded.ts'
import { defaultBounds, openPools } from '../../src/store/driver/postgres.ts'
import { type Driver, makeSql } from '../../src/store/driver/sql.ts'
import { bouncerUrl, type DatabaseName, serverUrl } from './databases.ts'
import { atProcessEnd } from './process-end.ts'

export interface SharedStore {
  readonly driver: Driver
  /** Undefined for the embedded store. */
  readonly url: string | undefined
  /** A store for one engine. Closing it waits for the engine's statements and refuses later ones. */
  open(schema: string): Pick<Store, 'sql' | 'close'> & Partial<Store>
  close(): Promise<void>
}

const shared = new Map<DatabaseName, Promise<SharedStore>>()

export function sharedStore(name: DatabaseName): Promise<SharedStore> {
  const known = shared.get(name)
  if (known !== undefined) return known
  const opening = name === 'embedded' ? embedded() : server(name)
  shared.set(name, opening)
  atProcessEnd(async () => (await opening).close())
  return opening
}

async function embedded(): Promise<SharedStore> {
  const { driver, close } = await openEmbedded(undefined)
  return {
    driver,
    url: undefined,
    open(schema) {
      const own = closable(driver)
      return { sql: makeSql(own.driver, schema), close: own.close }
    },
    close,
  }
}

async function server(name: Exclude<DatabaseName, 'embedded'>): Promise<SharedStore> {
  const url = name === 'pgbouncer' ? await bouncerUrl() : await serverUrl(name === 'postgres 15' ? 15 : 18)
  const pools = openPools(url, { connections: 4, prepare: true, bounds: defaultBounds })
  // A test that mocks timers would leave the pool's own timers running, and they would end connections that are in use.
  Object.assign(pools.pool.options, { idleTimeoutMillis: 0, connectionTimeoutMillis: 0 })
  return {
    driver: pools.driver,
    url,
    open(schema) {
      const [main, separate] = [closable(pools.driver), closable(pools.separate)]
      const own = { ...pools, driver: main.driver, separate: separate.driver }
      const close = async () => void (await Promise.all([main.close(), separate.close()]))
      return { ...serverStore({ url, pooler: 'detect' }, { ...own, close }, schema) }
    },
    close: pools.close,
  }
}

/** The shared driver for one engine: what the engine still sends after it was closed must not reach the next test. */
function closable(driver: Driver): { driver: Driver; close(): Promise<void> } {
  const pending = new Set<Promise<unknown>>()
  let isClosed = false
  const track = <T>(work: () => Promise<T>): Promise<T> => {
    if (isClosed) return Promise.reject(new Error('Cannot use a pool after calling end on the pool'))
    const doing = work()
    pending.add(doing)
    const done = () => void pending.delete(doing)
    doing.then(done, done)
    return doing
  }
  return {
    driver: {
      isTransaction: false,
      checkTurn: () => driver.checkTurn(),
      query: (text, values) => track(() => driver.query(text, values)),
      script: text => track(() => driver.script(text)),
      begin: (work, bounds) => track(() => driver.begin(work, bounds)),
    },
    async close() {
      isClosed = true
      await Promise.allSettled(pending)
    },
  }
}

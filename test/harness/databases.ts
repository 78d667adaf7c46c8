/**
 * The databases that tests run on: PostgreSQL 15 and 18, and the embedded store. A test file runs on one database at a
 * time. `npm test` uses PostgreSQL 18; `npm run test:all` repeats the file on the other two.
 */
import { startCluster } from './cluster.ts'
import type { PostgresVersion } from './postgres-binaries.ts'

export type DatabaseName = 'postgres 15' | 'postgres 18' | 'embedded'
export const everyDatabase: readonly DatabaseName[] = ['postgres 18', 'postgres 15', 'embedded']

/** Given by hand to run a single file with plain `node`; the runner calls `selectDatabase`. */
let selected = (process.env.PAWL_TEST_DATABASE ?? 'postgres 18') as DatabaseName
let isUsed = false

/** The database that the file runs on. */
export function database(): DatabaseName {
  isUsed = true
  return selected
}

export function selectDatabase(name: DatabaseName): void {
  selected = name
  isUsed = false
}

/** Whether the file asked for its database. Only such files are repeated on the others. */
export const databaseIsUsed = () => isUsed

/** Test options for what one connection cannot show: servers side by side, transactions that wait for each other. */
export function needsServer(): { readonly skip: string | false } {
  return { skip: database() === 'embedded' && 'needs a PostgreSQL server' }
}

/** Nothing here outlives the run, and nobody vacuums behind thousands of schemas that come and go. */
const quickSettings = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  shared_buffers: '256MB',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '8GB',
  checkpoint_timeout: '1h',
  autovacuum_naptime: '10min',
}
const started = new Map<number, Promise<string>>()

/**
 * The URL of a server that the test runner started, else of one that this process starts for itself. Without a version:
 * the version that the file runs on, or 18 if that is the embedded store.
 */
export function serverUrl(version: PostgresVersion = selected === 'postgres 15' ? 15 : 18): Promise<string> {
  const given = process.env[`PAWL_TEST_POSTGRES_${version}`]
  if (given !== undefined) return Promise.resolve(given)
  const running = started.get(version) ?? startCluster({ version, settings: quickSettings }).then(({ url }) => url)
  started.set(version, running)
  return running
}

/** Starts the servers that all test processes share. */
export async function startServers(): Promise<{ env: Record<string, string>; stop(): Promise<void> }> {
  const clusters = await Promise.all(
    ([15, 18] as const).map(version => startCluster({ version, settings: quickSettings })),
  )
  return {
    env: Object.fromEntries(clusters.map(({ version, url }) => [`PAWL_TEST_POSTGRES_${version}`, url])),
    stop: async () => void (await Promise.all(clusters.map(cluster => cluster.stop()))),
  }
}

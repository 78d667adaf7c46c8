/**
 * The databases that tests run on: PostgreSQL 15 and 18, the embedded store, and PostgreSQL 18 behind PgBouncer. A test
 * file runs on one database at a time. `npm test` uses PostgreSQL 18; `npm run test:all` repeats the file on 15 and
 * embedded, and stories behind PgBouncer.
 */
import { startCluster } from './cluster.ts'
import { hasPgBouncer, startPgBouncer } from './pgbouncer.ts'
import type { PostgresVersion } from './postgres-binaries.ts'

export type DatabaseName = 'postgres 15' | 'postgres 18' | 'embedded' | 'pgbouncer'
export const everyDatabase: readonly DatabaseName[] = ['postgres 18', 'postgres 15', 'embedded', 'pgbouncer']

/** The databases that a file is repeated on. A pooler changes only how statements reach the server, so stories suffice. */
export function otherDatabases(file: string): readonly DatabaseName[] {
  const isStory = file.startsWith('test/stories/')
  return ['postgres 15', 'embedded', ...(isStory && hasPgBouncer ? (['pgbouncer'] as const) : [])]
}

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

let bouncer: Promise<string> | undefined

/** PostgreSQL 18 through PgBouncer. */
export function bouncerUrl(): Promise<string> {
  const given = process.env.PAWL_TEST_PGBOUNCER
  if (given !== undefined) return Promise.resolve(given)
  bouncer ??= serverUrl(18).then(async url => (await startPgBouncer(url)).url)
  return bouncer
}

/** Starts the servers that all test processes share. */
export async function startServers(): Promise<{ env: Record<string, string>; stop(): Promise<void> }> {
  const clusters = await Promise.all(
    ([15, 18] as const).map(version => startCluster({ version, settings: quickSettings })),
  )
  const pooler = hasPgBouncer ? await startPgBouncer(clusters[1]!.url) : undefined
  if (pooler === undefined) console.error('PgBouncer was not found, so nothing is tested behind a pooler.')
  return {
    env: {
      ...Object.fromEntries(clusters.map(({ version, url }) => [`PAWL_TEST_POSTGRES_${version}`, url])),
      ...(pooler !== undefined && { PAWL_TEST_PGBOUNCER: pooler.url }),
    },
    async stop() {
      await pooler?.stop()
      await Promise.all(clusters.map(cluster => cluster.stop()))
    },
  }
}

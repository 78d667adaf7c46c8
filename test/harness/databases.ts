/**
 * The databases that tests run on: real PostgreSQL 15 and 18, and the embedded store. One of each serves all tests of
 * a process; every test has a schema of its own.
 */
import { basename } from 'node:path'
import { startCluster } from './cluster.ts'

export type DatabaseName = 'postgres 15' | 'postgres 18' | 'embedded'
export const everyDatabase: readonly DatabaseName[] = ['postgres 15', 'postgres 18', 'embedded']
/**
 * For what a single file proves about our own code, one server and the embedded store are enough; and as the embedded one
 * is slow and speaks the same SQL, a fifth of the files each day. By hand, all of them: PAWL_TEST_EMBEDDED=all
 */
export const bothKinds: readonly DatabaseName[] = isDayOf(basename(process.argv[1] ?? ''))
  ? ['postgres 18', 'embedded']
  : ['postgres 18']

function isDayOf(file: string): boolean {
  const today = Math.floor(Date.now() / 86_400_000) % 5
  const sum = [...file].reduce((total, letter) => total + letter.charCodeAt(0), 0)
  return process.env.PAWL_TEST_EMBEDDED === 'all' || sum % 5 === today
}

/** Nothing here outlives the run, and nobody tidies up behind thousands of schemas that come and go. */
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

/** The address of a server that the test runner started, else of one that this process starts for itself. */
export function serverUrl(version: 15 | 18): Promise<string> {
  const given = process.env[`PAWL_TEST_POSTGRES_${version}`]
  if (given !== undefined) return Promise.resolve(given)
  const running = started.get(version) ?? startCluster({ version, settings: quickSettings }).then(({ url }) => url)
  started.set(version, running)
  return running
}

/** What the runner starts once for all test files. */
export async function startServers(): Promise<{ env: Record<string, string>; stop(): Promise<void> }> {
  const clusters = await Promise.all(
    ([15, 18] as const).map(version => startCluster({ version, settings: quickSettings })),
  )
  return {
    env: Object.fromEntries(clusters.map(({ version, url }) => [`PAWL_TEST_POSTGRES_${version}`, url])),
    stop: async () => void (await Promise.all(clusters.map(cluster => cluster.stop()))),
  }
}

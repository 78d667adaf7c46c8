/** A standby of a server, streaming from it. The binaries lack pg_basebackup, so the backup is taken by hand. */
import { appendFileSync, chownSync, cpSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import pg from 'pg'
import { type Cluster, startCluster } from './cluster.ts'
import { eventually } from './eventually.ts'

/** Settings of the primary that allow a standby to follow it. */
export const primarySettings = { wal_level: 'replica', max_wal_senders: '4', wal_keep_size: '256MB' }

export interface Standby extends Cluster {
  /** Resolves when it has everything that the primary has written so far. */
  caughtUp(): Promise<void>
  /** Stops replication. */
  cutOff(): Promise<void>
  /** Promotes it to primary. */
  promote(): Promise<void>
}

export async function startStandby(primary: Cluster): Promise<Standby> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-standby-'))
  const data = join(folder, 'data')
  await copyData(primary, data)
  // In a file, not on the command line, so that it can be changed while the server runs.
  const source = `host=127.0.0.1 port=${primary.port} user=postgres`
  appendFileSync(join(data, 'postgresql.auto.conf'), `primary_conninfo = '${source}'\n`)
  const cluster = await startCluster({ version: primary.version, folder, settings: primarySettings })
  const ask = (text: string) => onServer(cluster.url, client => client.query(text))
  return {
    ...cluster,
    async caughtUp() {
      const { rows } = await onServer(primary.url, client => client.query('select pg_current_wal_lsn() as lsn'))
      const isThere = `select pg_last_wal_replay_lsn() >= '${rows[0].lsn}' as there`
      await eventually('the standby has caught up', async () => (await ask(isThere)).rows[0].there)
    },
    async cutOff() {
      await ask(`alter system set primary_conninfo = ''`)
      await ask('select pg_reload_conf()')
      const receivers = async () => (await ask('select from pg_stat_wal_receiver')).rowCount
      await eventually('the standby receives nothing', async () => (await receivers()) === 0)
    },
    promote: async () => void (await ask('select pg_promote(true, 60)')),
  }
}

async function copyData(primary: Cluster, data: string): Promise<void> {
  const from = join(primary.folder, 'data')
  await onServer(primary.url, async client => {
    await client.query(`select pg_backup_start('standby', true)`)
    cpSync(from, data, {
      recursive: true,
      filter: path => basename(path) !== 'postmaster.pid',
      preserveTimestamps: true,
    })
    const { rows } = await client.query('select labelfile from pg_backup_stop(false)')
    writeFileSync(join(data, 'backup_label'), rows[0].labelfile)
  })
  writeFileSync(join(data, 'standby.signal'), '')
  const { uid, gid } = statSync(from)
  for (const path of [
    data,
    ...readdirSync(data, { recursive: true, encoding: 'utf8' }).map(name => join(data, name)),
  ]) {
    chownSync(path, uid, gid)
  }
  rmSync(join(data, 'postmaster.opts'), { force: true })
}

async function onServer<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end().catch(() => {})
  }
}

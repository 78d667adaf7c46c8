/** A real PgBouncer in transaction mode in front of a PostgreSQL server, if PgBouncer is installed. */
import { spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { freePort, ordinaryUser } from './cluster.ts'
import { eventually } from './eventually.ts'
import { endServer, startGuard } from './server-process.ts'

const program = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer', '/usr/local/bin/pgbouncer'].find(path => existsSync(path))

export const hasPgBouncer = program !== undefined

export interface PgBouncer {
  readonly url: string
  stop(): Promise<void>
}

/** `serverConnections`: how many connections to the server all clients share. */
export async function startPgBouncer(serverUrl: string, serverConnections = 20): Promise<PgBouncer> {
  if (program === undefined) throw new Error('PgBouncer is not installed (Debian: apt install pgbouncer).')
  const folder = mkdtempSync(join(tmpdir(), 'pawl-pgbouncer-'))
  const user = ordinaryUser()
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid!)
  const { port: serverPort } = new URL(serverUrl)
  const port = await freePort()
  const log = join(folder, 'pgbouncer.log')
  const settings = join(folder, 'pgbouncer.ini')
  writeFileSync(join(folder, 'users.txt'), '"postgres" ""\n')
  writeFileSync(
    settings,
    `[databases]
postgres = host=127.0.0.1 port=${serverPort} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
auth_file = ${join(folder, 'users.txt')}
pool_mode = transaction
default_pool_size = ${serverConnections}
max_client_conn = 1000
logfile = ${log}
`,
  )
  const guard = startGuard(folder)
  const server = spawn(program, ['-q', settings], { cwd: folder, stdio: 'ignore', detached: true, ...user })
  server.on('error', () => {})
  server.unref()
  guard.watch(server.pid ?? 0)
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  await eventually('PgBouncer answers', async () => {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2000 })
    client.on('error', () => {})
    try {
      await client.connect()
      return (await client.query('select 1')).rowCount === 1
    } catch {
      return false
    } finally {
      await client.end().catch(() => {})
    }
  }).catch(error => {
    throw new Error(`${error.message}: ${existsSync(log) ? readFileSync(log, 'utf8').slice(-2000) : 'no log'}`)
  })
  return {
    url,
    async stop() {
      await endServer(server, 'SIGINT')
      rmSync(folder, { recursive: true, force: true })
      guard.release()
    },
  }
}

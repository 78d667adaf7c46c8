// A throw-away PostgreSQL server of our own, so that tests and the bench need nothing but Node and npm.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { type PostgresVersion, postgresBinaries } from './postgres-binaries.ts'
import { endServer, type Guard, isRunning, startGuard } from './server-process.ts'

export interface ClusterOptions {
  version: PostgresVersion
  /** Server settings, as in postgresql.conf; without any, the server is as durable as its defaults. */
  settings?: Record<string, string>
  /**
   * Folder of the data and the log. If it contains a cluster, that is started again. Default: a new folder, which is
   * removed when this process ends, however it ends.
   */
  folder?: string
  /** Default: a free one. */
  port?: number
}

export interface Cluster {
  url: string
  version: PostgresVersion
  port: number
  folder: string
  /** Process id of the server's main process; 0 while it is stopped. */
  pid(): number
  /** Shuts down cleanly and removes the folder. */
  stop(): Promise<void>
  /** Ends every process of the server at once, as a crash of the machine would; the folder stays. */
  kill(): Promise<void>
  /** Starts the server on the same folder and port: after a crash, or to restart it. */
  restart(): Promise<void>
}

interface Place {
  bin: string
  folder: string
  data: string
  log: string
  user: { uid?: number; gid?: number }
  settings: Record<string, string>
}

interface Launched {
  server: ChildProcess
  port: number
}

const startSeconds = 60
const environment = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }

export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const place = await preparePlace(options)
  const isTemporary = options.folder === undefined
  const guard = startGuard(isTemporary ? place.folder : '')
  try {
    if (!existsSync(join(place.data, 'PG_VERSION'))) await initialise(place)
    let { server, port } = await launch(place, guard, options.port)

    const down = async (signal: NodeJS.Signals) => {
      await endServer(server, signal)
      guard.watch(0)
    }
    return {
      url: `postgres://postgres@127.0.0.1:${port}/postgres`,
      version: options.version,
      port,
      folder: place.folder,
      pid: () => (isRunning(server) ? server.pid! : 0),
      kill: () => down('SIGKILL'),
      async stop() {
        await down('SIGINT')
        await rm(place.folder, { recursive: true, force: true })
        guard.release()
      },
      async restart() {
        await down('SIGINT')
        server = (await launch(place, guard, port)).server
      },
    }
  } catch (error) {
    if (isTemporary) await rm(place.folder, { recursive: true, force: true })
    guard.release()
    throw error
  }
}

async function preparePlace({ version, settings = {}, folder }: ClusterOptions): Promise<Place> {
  const binaries = await postgresBinaries(version)
  if (folder !== undefined) mkdirSync(folder, { recursive: true })
  const root = await realpath(folder ?? (await mkdtemp(join(tmpdir(), `pawl-cluster-${version}-`))))
  const user = ordinaryUser()
  chmodSync(root, 0o700)
  if (user.uid !== undefined) chownSync(root, user.uid >>> 0, user.gid! >>> 0)
  return {
    bin: join(binaries, 'bin'),
    folder: root,
    data: join(root, 'data'),
    log: join(root, 'postgres.log'),
    user,
    settings: { max_connections: '200', ...settings },
  }
}

/** PostgreSQL refuses to run as root. The user must have a passwd entry, because initdb reads it. */
export function ordinaryUser(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {}
  const known = readFileSync('/etc/passwd', 'utf8').split('\n')
  const line = known.find(entry => entry.startsWith('nobody:'))
  if (line === undefined) throw new Error('PostgreSQL cannot run as root, and there is no user "nobody" to run it as')
  const [, , uid, gid] = line.split(':')
  return { uid: Number(uid), gid: Number(gid) }
}

async function initialise({ bin, folder, data, user }: Place): Promise<void> {
  // Without --no-sync it would flush every file. A crash at this step loses nothing of value.
  const flags = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']
  const limits = { timeout: startSeconds * 1000, killSignal: 'SIGKILL' as const }
  await promisify(execFile)(join(bin, 'initdb'), flags, { cwd: folder, env: environment, ...user, ...limits })
}

/**
 * Another process may take the free port before the server listens on it. Then another port is tried, or the same
 * again.
 */
async function launch(place: Place, guard: Guard, fixedPort?: number): Promise<Launched> {
  const deadline = Date.now() + startSeconds * 1000
  for (;;) {
    const port = fixedPort ?? (await freePort())
    const logStart = logOf(place).length
    const server = spawnServer(place, port)
    guard.watch(server.pid ?? 0)
    if (await isReady(server, place, port, deadline)) return { server, port }

    await endServer(server, 'SIGKILL')
    guard.watch(0)
    const log = logOf(place).slice(logStart)
    const clash = log.includes('could not bind') || log.includes('could not create any TCP/IP sockets')
    if (!clash || Date.now() > deadline) {
      throw new Error(`PostgreSQL did not start on port ${port}; its log ends with:\n${log.slice(-3000)}`)
    }
    await sleep(100)
  }
}

function spawnServer({ bin, folder, data, log, user, settings }: Place, port: number): ChildProcess {
  const fixed = { port: String(port), listen_addresses: '127.0.0.1', unix_socket_directories: '' }
  const flags = Object.entries({ ...settings, ...fixed }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const output = openSync(log, 'a')
  // Detached, so that Ctrl-C in a terminal reaches the tests and not their server.
  const server = spawn(join(bin, 'postgres'), ['-D', data, ...flags], {
    cwd: folder,
    env: environment,
    stdio: ['ignore', output, output],
    detached: true,
    ...user,
  })
  closeSync(output)
  server.on('error', () => {})
  server.unref()
  return server
}

/** False if the server ended or the time is up. Compares the data folder, because another server may have the port. */
async function isReady(server: ChildProcess, { data }: Place, port: number, deadline: number): Promise<boolean> {
  while (isRunning(server) && Date.now() < deadline) {
    const client = new pg.Client({
      host: '127.0.0.1',
      port,
      user: 'postgres',
      database: 'postgres',
      connectionTimeoutMillis: 5000,
    })
    client.on('error', () => {})
    try {
      await client.connect()
      const { rows } = await client.query(`select current_setting('data_directory') as folder`)
      if (rows[0].folder === data) return true
    } catch {
      // Not listening yet, or still starting up.
    } finally {
      await client.end().catch(() => {})
    }
    await sleep(50)
  }
  return false
}

/** A port of the loopback address that is free at the moment. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  if (address === null || typeof address === 'string') throw new Error('no free port')
  return address.port
}

function logOf({ log }: Place): string {
  return existsSync(log) ? readFileSync(log, 'utf8') : ''
}

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort } from '../test/harness/cluster.ts'
import { endServer, startGuard } from '../test/harness/server-process.ts'

export interface RedisServer {
  port: number
  version: string
  stop(): Promise<void>
}

/** Starts a temporary Redis that logs every write and syncs once a second. Throws if Redis is not installed. */
export async function startRedis(): Promise<RedisServer> {
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'pawl-redis-'))
  const guard = startGuard(folder)
  const flags = ['--port', port, '--bind', '127.0.0.1', '--dir', folder, '--appendonly', 'yes', '--save', '']
  const server = spawn('redis-server', flags.map(String), { stdio: 'ignore', detached: true })
  const stop = async () => {
    await endServer(server, 'SIGTERM')
    await rm(folder, { recursive: true, force: true })
    guard.release()
  }
  try {
    await once(server, 'spawn')
    guard.watch(server.pid ?? 0)
    server.unref()
    return { port, version: await versionOf(port), stop }
  } catch (error) {
    await stop()
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new Error('no redis-server on PATH')
    throw error
  }
}

/** Waits for its first answer, at most ten seconds. */
async function versionOf(port: number): Promise<string> {
  const retryStrategy = (times: number) => (times < 100 ? 100 : null)
  const client = new Redis({ port, host: '127.0.0.1', retryStrategy, maxRetriesPerRequest: 100 })
  client.on('error', () => {})
  try {
    const info = await client.info('server')
    return /redis_version:(\S+)/.exec(info)?.[1] ?? 'unknown'
  } finally {
    client.disconnect()
  }
}

// Temporal's dev server, for a comparison of workflows. Its packages are large, so the bench does not install them.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../test/harness/cluster.ts'
import { end, startProcess } from './processes.ts'
import type { Flow } from './work.ts'

/** The parts of its packages that are used here. */
interface TemporalConnection {
  close(): Promise<void>
}
interface TemporalWorker {
  run(): Promise<void>
  shutdown(): void
}
interface Packages {
  Worker: { create(options: object): Promise<TemporalWorker> }
  NativeConnection: { connect(options: object): Promise<TemporalConnection> }
  Runtime: { install(options: object): unknown }
  DefaultLogger: new (level: string) => object
  Connection: { connect(options: object): Promise<TemporalConnection> }
  Client: new (options: object) => { workflow: { execute(name: string, options: object): Promise<unknown> } }
}

const install =
  'npm install --no-save --ignore-scripts --prefix bench @temporalio/client @temporalio/worker @temporalio/workflow'
const startSeconds = 30

/** A dev server on a file, a worker and a client. Throws if the program or the packages are not installed. */
export async function openTemporal(): Promise<Flow> {
  const { Worker, NativeConnection, Runtime, DefaultLogger, Connection, Client } = await loadPackages()
  const folder = await mkdtemp(join(tmpdir(), 'pawl-bench-temporal-'))
  const port = await freePort()
  const flags = ['--headless', '--ip', '127.0.0.1', '--port', port, '--db-filename', join(folder, 'temporal.db')]
  const server = startProcess('temporal', ['server', 'start-dev', ...flags.map(String), '--log-level', 'error'])
  // Unread output would block the server.
  server.stdout!.resume()
  try {
    const address = `127.0.0.1:${port}`
    Runtime.install({ logger: new DefaultLogger('ERROR') })
    const connection = await connected(
      () => Connection.connect({ address }),
      () => server.exitCode,
    )
    const workerConnection = await NativeConnection.connect({ address })
    const worker = await Worker.create({
      connection: workerConnection,
      taskQueue: 'bench',
      workflowsPath: join(import.meta.dirname, 'programs/temporal-workflow.mjs'),
      activities: { noop: async () => {} },
    })
    const running = worker.run()
    const client = new Client({ connection })
    let started = 0
    return {
      name: "Temporal's dev server: a workflow of one activity",
      run: async payload => {
        const workflowId = `bench-${++started}`
        await client.workflow.execute('oneActivity', { taskQueue: 'bench', workflowId, args: [payload] })
      },
      async close() {
        worker.shutdown()
        await running
        await workerConnection.close()
        await connection.close()
        await end(server)
        await rm(folder, { recursive: true, force: true })
      },
    }
  } catch (error) {
    await end(server)
    await rm(folder, { recursive: true, force: true })
    throw server.pid === undefined ? new Error('no temporal on PATH') : error
  }
}

async function loadPackages(): Promise<Packages> {
  const names = ['@temporalio/client', '@temporalio/worker', '@temporalio/workflow']
  try {
    return Object.assign({}, ...(await Promise.all(names.map(name => import(name)))))
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new Error(`its packages are not installed: ${install}`)
  }
}

async function connected<T>(connect: () => Promise<T>, exitCode: () => number | null): Promise<T> {
  for (const deadline = Date.now() + startSeconds * 1000; ; ) {
    try {
      return await connect()
    } catch (error) {
      if (Date.now() > deadline || exitCode() !== null) throw error
      await sleep(200)
    }
  }
}

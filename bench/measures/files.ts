import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { Measure } from '../contender.ts'
import { type OwnStore, openOwnStore } from '../own-store.ts'
import { milliseconds, table, whole } from '../report.ts'

const cli = join(import.meta.dirname, '../../dist/cli/main.js')
const workers = 4

/** The overhead of a command over many files: listing them, and passing each datum through a worker. */
export const measure: Measure = {
  name: 'files',
  async run({ cluster, quick }) {
    const [listed, done] = quick ? [2000, 100] : [100_000, 10_000]
    const rows: string[][] = []
    const store = await openOwnStore(cluster, 'files')
    try {
      rows.push(await find(store, listed))
      rows.push(...(await work(store, done)))
    } finally {
      await store.close()
    }
    return { title: 'Commands over files', markdown: table(['', '', 'each'], rows) }
  },
}

/** From the submit to the last datum being a task that can be claimed. */
async function find(store: OwnStore, count: number): Promise<string[]> {
  await using folder = await filesIn(count)
  await using _server = await serverOn(store)
  const began = performance.now()
  const { id } = await store.engine.submit({ name: 'list', stages: [stage(folder.uri, 'nobody')] })
  for (;;) {
    const { rows } = await store.client.query('select listing from pawl.stage where job_id = $1', [id])
    if (rows[0]?.listing === 'done') break
    await sleep(10)
  }
  const ms = performance.now() - began
  const { progress } = await store.engine.job(id)
  if (progress.total !== count) throw new Error(`found ${progress.total} of ${count}`)
  await store.engine.cancelJob(id)
  return [`submit and find ${whole(count)} files`, `${(ms / 1000).toFixed(1)} s`, milliseconds(ms / count)]
}

/** A command that does nothing, by workers of their own, and the same processes without Pawl. */
async function work(store: OwnStore, count: number): Promise<string[][]> {
  const bare = await runBare(count)
  await using folder = await filesIn(count)
  const server = await serverOn(store)
  await using _server = server
  const crew = Array.from({ length: workers }, () => workerOn(server.url))
  try {
    await Promise.all(crew.map(child => once(child.stdout!, 'data')))
    const began = performance.now()
    const { id } = await store.engine.submit({ name: 'work', stages: [stage(folder.uri, 'command')] })
    for (;;) {
      const { state, progress } = await store.engine.job(id)
      if (state === 'succeeded') break
      if (progress.bad > 0) throw new Error('a command failed')
      await sleep(50)
    }
    const ms = performance.now() - began
    return [
      [
        `${whole(count)} processes, ${workers} at once, without Pawl`,
        `${(bare / 1000).toFixed(1)} s`,
        milliseconds(bare / count),
      ],
      [`${whole(count)} files through ${workers} workers`, `${(ms / 1000).toFixed(1)} s`, milliseconds(ms / count)],
      ['what Pawl adds', '', milliseconds((ms - bare) / count)],
    ]
  } finally {
    for (const child of crew) child.kill('SIGTERM')
    await Promise.all(crew.map(child => once(child, 'exit')))
  }
}

const stage = (uri: string, queue: string) => ({
  name: 's',
  run: { command: ['true'] },
  inputs: { doc: { uri } },
  queue,
})

async function runBare(count: number): Promise<number> {
  const began = performance.now()
  let left = count
  const lane = async () => {
    while (left-- > 0) await once(spawn('true', { stdio: ['ignore', 'pipe', 'pipe'], detached: true }), 'exit')
  }
  await Promise.all(Array.from({ length: workers }, lane))
  return performance.now() - began
}

async function filesIn(count: number) {
  const path = await mkdtemp(join(tmpdir(), 'pawl-bench-'))
  for (let from = 0; from < count; from += 500) {
    const some = Array.from({ length: Math.min(500, count - from) }, (_, n) => from + n)
    await Promise.all(some.map(n => writeFile(join(path, `file-${String(n).padStart(6, '0')}.txt`), 'some text\n')))
  }
  const [uri, remove] = [pathToFileURL(path).href, () => rm(path, { recursive: true })]
  return { uri, [Symbol.asyncDispose]: remove }
}

async function serverOn({ url }: OwnStore) {
  const program = join(import.meta.dirname, '../programs/server.ts')
  const child = spawn(process.execPath, [program, url], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [said] = await once(child.stdout, 'data')
  const stop = async () => {
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
  return { url: String(said).trim(), [Symbol.asyncDispose]: stop }
}

function workerOn(url: string): ChildProcess {
  const args = [cli, 'worker', '--commands', '--concurrency', '1', '--server', url]
  return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
}

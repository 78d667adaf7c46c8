import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { Figure, Measure } from '../contender.ts'
import { milliseconds, table, whole } from '../markdown.ts'
import { type OwnStore, openOwnStore } from '../own-store.ts'
import { end, firstLine, startProcess, startServerProcess } from '../processes.ts'
import { profileFlags } from '../profile.ts'

const cli = join(import.meta.dirname, '../../dist/cli/main.js')
const workers = 4

/** The overhead of a command over many files: listing them, and passing each datum through a worker. */
export const measure: Measure = {
  name: 'files',
  async run({ cluster, quick }) {
    const [listed, done] = quick ? [2000, 300] : [100_000, 3000]
    const rows: string[][] = []
    const store = await openOwnStore(cluster, 'files')
    try {
      rows.push(await find(store, listed))
      const { rows: worked, overhead } = await work(store, done)
      rows.push(...worked)
      const figures: Figure[] = [{ name: 'files.overhead', value: overhead, unit: 'ms', better: 'lower' }]
      return { title: 'Commands over files', markdown: table(['', '', 'each'], rows), figures }
    } finally {
      await store.close()
    }
  },
}

/** From the submit until the last datum is a claimable task. */
async function find(store: OwnStore, count: number): Promise<string[]> {
  await using folder = await filesIn(count)
  await using _server = await startServerProcess(store.url)
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

/** A command that does nothing, run by workers and, for comparison, without Pawl. */
async function work(store: OwnStore, count: number): Promise<{ rows: string[][]; overhead: number }> {
  const bare = await runBare(count)
  await using folder = await filesIn(count)
  await using server = await startServerProcess(store.url)
  const crew = Array.from({ length: workers }, () => workerOn(server.url))
  try {
    await Promise.all(crew.map(firstLine))
    const began = performance.now()
    const { id } = await store.engine.submit({ name: 'work', stages: [stage(folder.uri, 'command')] })
    for (;;) {
      const { state, progress } = await store.engine.job(id)
      if (state === 'succeeded') break
      if (progress.bad > 0) throw new Error('a command failed')
      await sleep(50)
    }
    const ms = performance.now() - began
    const overhead = (ms - bare) / count
    const rows = [
      [
        `${whole(count)} processes, ${workers} at once, without Pawl`,
        `${(bare / 1000).toFixed(1)} s`,
        milliseconds(bare / count),
      ],
      [`${whole(count)} files through ${workers} workers`, `${(ms / 1000).toFixed(1)} s`, milliseconds(ms / count)],
      ['what Pawl adds', '', milliseconds(overhead)],
    ]
    return { rows, overhead }
  } finally {
    await Promise.all(crew.map(child => end(child)))
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

function workerOn(url: string) {
  return startProcess(process.execPath, [
    ...profileFlags('command-worker'),
    cli,
    'worker',
    '--commands',
    '--concurrency',
    '1',
    '--server',
    url,
  ])
}

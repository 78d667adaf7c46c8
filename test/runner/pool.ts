/** Runs test files in a few processes that each take one file after another. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { DatabaseName } from '../harness/databases.ts'
import type { Report, TestResult } from './messages.ts'
import { runsAlone } from './tiers.ts'

/** A test file on a database. */
export interface Run {
  /** The path of the source, from the project's root, without its extension. */
  readonly file: string
  readonly database: DatabaseName
}

export interface RunResult extends Run {
  readonly results: readonly TestResult[]
  readonly seconds: number
  /** Everything that the file printed. */
  readonly output: string
  readonly notes: readonly string[]
  readonly usesDatabase: boolean
}

export interface PoolOptions {
  /** Where the compiled files are. */
  readonly build: string
  readonly processes: number
  /** Shows sources in stack traces. It costs time, and memory in tests that measure it. */
  readonly sourceMaps: boolean
  /** A file that takes longer is stopped, and fails. */
  readonly fileSeconds: number
  /** How long a process may take to exit once its last file has ended. Default 30. */
  readonly exitSeconds?: number
  /** Called as each file ends. Returns runs that are to follow, such as the same file on other databases. */
  onEnd(result: RunResult): readonly Run[]
}

export async function runPool(runs: readonly Run[], options: PoolOptions): Promise<void> {
  const waiting = [...runs]
  let busy = 0
  const changed = new Set<() => void>()
  const next = async (): Promise<Run | undefined> => {
    // A file that still runs may be followed by more.
    while (waiting.length === 0 && busy > 0) await new Promise<void>(resolve => changed.add(resolve))
    const run = waiting.shift()
    if (run !== undefined) busy += 1
    return run
  }
  const finish = (result: RunResult) => {
    waiting.push(...options.onEnd(result))
    busy -= 1
    for (const tell of changed) tell()
    changed.clear()
  }
  const work = async () => {
    let process: TestProcess | undefined
    for (;;) {
      const run = await next()
      if (run === undefined) break
      const isAlone = run.file in runsAlone
      if (isAlone || process?.isOver()) {
        await process?.end(options)
        process = undefined
      }
      process ??= await startProcess(options)
      finish(await process.run(run, options))
      if (isAlone) {
        await process.end(options)
        process = undefined
      }
    }
    await process?.end(options)
  }
  await Promise.all(Array.from({ length: options.processes }, work))
}

interface TestProcess {
  isOver(): boolean
  run(run: Run, options: PoolOptions): Promise<RunResult>
  /** Waits for the process to exit. If something keeps it alive, that is a failure. */
  end(options: PoolOptions): Promise<void>
}

async function startProcess({ build, sourceMaps }: PoolOptions): Promise<TestProcess> {
  const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
  const reporter = pathToFileURL(here('reporter.js')).href
  const child = fork(here('worker.js'), {
    execArgv: [
      ...(sourceMaps ? ['--enable-source-maps'] : []),
      '--no-warnings',
      `--test-reporter=${reporter}`,
      '--test-reporter-destination=stdout',
    ],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  let output = ''
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', text => (output += text))
  const isOver = () => child.exitCode !== null || child.signalCode !== null || !child.connected
  let last = 'nothing'
  let hasFailed = false
  await reportsUntil(child, 'ready', 60)
  return {
    isOver,
    async run(run, { fileSeconds }) {
      last = `${run.file} on ${run.database}`
      output = ''
      const began = performance.now()
      const url = pathToFileURL(`${build}/${run.file}.js`).href
      const reports = reportsUntil(child, 'ended', fileSeconds)
      child.send({ url, database: run.database })
      const { taken, fault } = await reports
      if (fault !== undefined) await kill(child)
      const results = taken.flatMap(report => (report.kind === 'result' ? [report.result] : []))
      if (fault !== undefined) results.push({ path: [fault], outcome: 'failed', ms: 0, error: output.slice(-4000) })
      hasFailed ||= results.some(({ outcome }) => outcome === 'failed')
      const end = taken.at(-1)
      return {
        ...run,
        results,
        seconds: (performance.now() - began) / 1000,
        output,
        notes: taken.flatMap(report => (report.kind === 'note' ? [report.text] : [])),
        usesDatabase: end?.kind === 'ended' && end.usesDatabase,
      }
    },
    async end({ onEnd, exitSeconds = 30 }) {
      if (isOver()) return
      const exited = once(child, 'exit')
      child.send('end')
      const timer = setTimeout(() => child.kill('SIGKILL'), exitSeconds * 1000)
      const [code, signal] = await exited
      clearTimeout(timer)
      // Node exits with 1 after a failed test.
      if (code === 0 || (code === 1 && hasFailed)) return
      const why = signal === null ? `it exited with ${code}` : 'a test left something running'
      const path = [`a test process did not end by itself after ${last}: ${why}`]
      const result: TestResult = { path, outcome: 'failed', ms: 0, error: output.slice(-4000) }
      onEnd({
        file: 'the runner',
        database: 'postgres 18',
        results: [result],
        seconds: 0,
        output,
        notes: [],
        usesDatabase: false,
      })
    },
  }
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}

/** Collects reports up to the first of a kind. `fault`: why that one is missing. */
function reportsUntil(child: ChildProcess, kind: Report['kind'], seconds: number) {
  return new Promise<{ taken: readonly Report[]; fault?: string }>(resolve => {
    const taken: Report[] = []
    const stop = (fault?: string) => {
      clearTimeout(timer)
      child.off('message', take)
      child.off('exit', exited)
      resolve({ taken, ...(fault !== undefined && { fault }) })
    }
    const take = (report: Report) => {
      taken.push(report)
      if (report.kind === kind) stop()
    }
    const exited = (code: number | null, signal: string | null) =>
      stop(`the test process exited with ${code ?? signal}`)
    const timer = setTimeout(() => stop(`the file did not end within ${seconds} s`), seconds * 1000)
    child.on('message', take)
    child.on('exit', exited)
  })
}

/** The environment of one check: its own queue, its own worker process, and a proxy between it and the server. */

import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Engine } from '../engine/engine.ts'
import { taskLifecycle } from '../kernel/task.ts'
import type { HeldTask } from '../protocol/tasks/sync.ts'
import type { EventView, TaskOptions, TaskView } from '../protocol/tasks/tasks.ts'
import { expect, Fault } from './check.ts'
import { startProxy } from './proxy.ts'

/** The payload of a task of the type `conformance`. */
export interface TestPayload {
  readonly do: 'succeed' | 'fail' | 'giveUp' | 'retryIn' | 'sleep'
  readonly seconds?: number
  readonly output?: unknown
  readonly message?: string
  /** The number of attempts that do it; later ones succeed. */
  readonly times?: number
}

const testType = 'conformance'
export const drainSeconds = 5

/** Short enough for a check to wait until it expires. */
export const shortLeaseSeconds = 6
export const shortLease: TaskOptions = { leaseSeconds: shortLeaseSeconds, heartbeatSeconds: 3 }
const quickRetry: TaskOptions = { retry: { attempts: 3, delaySeconds: 0.1, jitter: false } }

export interface SuiteContext {
  readonly engine: Engine
  readonly serverUrl: string
  readonly key: string
  readonly command: string
  readonly folder: string
  readonly signal: AbortSignal | undefined
}

type PollResult<T> = T | undefined | false | Promise<T | undefined | false>

export type Rig = Awaited<ReturnType<typeof openRig>>

export async function openRig(suite: SuiteContext, queue: string) {
  const { engine, signal } = suite
  const proxy = await startProxy(suite.serverUrl)
  const journal = readJournal(join(suite.folder, `${queue}.journal`))
  let worker: WorkerProcess | undefined
  let mayEnd = false

  const assertRunning = () => {
    if (signal?.aborted) throw new Fault('the suite was stopped')
    const exit = worker?.exit()
    if (exit === undefined || mayEnd) return
    throw new Fault(`the worker ended by itself (${exit.signal ?? `exit code ${exit.code}`})`)
  }
  /** Polls until `poll` finds something. Throws a fault after `seconds`, or if the worker exits meanwhile. */
  const until = async <T>(fact: string, seconds: number, poll: () => PollResult<T>): Promise<T> => {
    const deadline = performance.now() + seconds * 1000
    for (;;) {
      const found = await poll()
      if (found !== undefined && found !== false) return found
      assertRunning()
      if (performance.now() > deadline) throw new Fault(`not within ${seconds} s: ${fact}`)
      await sleep(40)
    }
  }
  const enqueueOther = async (type: string, payload: unknown, options: TaskOptions = {}) =>
    (await engine.enqueue(type, payload, { ...quickRetry, ...options, queue })).id

  return {
    engine,
    queue,
    proxy,
    journal,
    /** Starts the worker; a check does this once. */
    start(): WorkerProcess {
      const started = startWorkerProcess(suite.command, {
        PAWL_SERVER: proxy.url,
        PAWL_KEY: suite.key,
        PAWL_QUEUES: queue,
        PAWL_DRAIN_SECONDS: String(drainSeconds),
        PAWL_JOURNAL: journal.file,
      })
      worker = started
      return {
        ...started,
        terminate() {
          mayEnd = true
          started.terminate()
        },
      }
    },
    enqueue: (payload: TestPayload, options?: TaskOptions) => enqueueOther(testType, payload, options),
    enqueueOther: (type: string, options?: TaskOptions) => enqueueOther(type, {}, options),
    until,
    /** Waits. Throws a fault if the worker exits meanwhile. */
    async pause(seconds: number): Promise<void> {
      const over = performance.now() + seconds * 1000
      await until('the pause is over', seconds + 5, () => performance.now() >= over)
    },
    /** Waits until the handler has begun the task, and returns the epoch. */
    begun: (id: string, seconds = 15): Promise<number> =>
      until('the handler wrote its "begin" line to PAWL_JOURNAL', seconds, () => journal.begun(id)[0]),
    /** Waits until the task is in this state, described by `fact`. */
    async inState(id: string, state: TaskView['state'], seconds: number, fact: string): Promise<void> {
      await until(fact, seconds, async () => (await engine.task(id)).state === state)
    },
    ended: (id: string, seconds = 15): Promise<TaskView> =>
      until('the task has ended', seconds, async () => {
        const task = await engine.task(id)
        return taskLifecycle.states[task.state].kind === 'final' && task
      }),
    /** The event that ended a lease of the task. */
    async endOf(id: string, epoch: number): Promise<EventView | undefined> {
      const { items } = await engine.taskEvents(id)
      return items.find(event => event.epoch === epoch && isHeld(event.from) && !isHeld(event.to))
    },
    /** The last lines of the worker's output. */
    recentOutput: () => worker?.recentOutput() ?? '',
    async close(): Promise<void> {
      try {
        await worker?.end()
      } finally {
        await proxy.close()
      }
    },
  }
}

const isHeld = (state: string | null) => state === 'assigned' || state === 'running'

export function expectOneRun({ journal }: Rig, id: string): void {
  const runs = journal.begun(id).length
  expect(runs === 1, `its handler ran ${runs} times instead of once`)
}

/**
 * A line of the journal that the test handlers write. The traffic cannot show whether a handler has begun or has stopped,
 * so it writes a line to a file when it begins, and another when it stops, however it ends.
 */
export interface Entry extends HeldTask {
  readonly word: 'begin' | 'end'
}

function readJournal(file: string) {
  const entries = () => (existsSync(file) ? readFileSync(file, 'utf8') : '').split('\n').flatMap(parseEntry)
  const epochs = (word: Entry['word'], wanted: string) =>
    entries().flatMap(entry => (entry.word === word && entry.id === wanted ? [entry.epoch] : []))
  return {
    file,
    entries,
    /** The epochs in which a handler began the task, in order. */
    begun: (id: string) => epochs('begin', id),
    ended: (id: string) => epochs('end', id),
  }
}

function parseEntry(line: string): Entry[] {
  const [, word, id, epoch] = /^(begin|end) (\S+) (\d+)$/.exec(line.trim()) ?? []
  return word === undefined ? [] : [{ word: word as Entry['word'], id: id!, epoch: Number(epoch) }]
}

export type WorkerProcess = ReturnType<typeof startWorkerProcess>

const keptCharacters = 2000

/** Runs a shell command in its own process group, so that it can be killed with all its children. */
function startWorkerProcess(command: string, environment: Readonly<Record<string, string>>) {
  // `exec` replaces the shell, so that signals reach the program. `detached` gives it its own process group.
  const child = spawn('sh', ['-c', `exec ${command}`], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let exit: { readonly code: number | null; readonly signal: NodeJS.Signals | null } | undefined
  let output = ''
  const append = (text: Buffer) => {
    output = (output + text.toString()).slice(-keptCharacters)
  }
  child.stdout.on('data', append)
  child.stderr.on('data', append)
  const ended = new Promise<void>(resolve => {
    child.once('error', error => {
      output += String(error)
      exit = { code: null, signal: null }
      resolve()
    })
    child.once('exit', (code, signal) => {
      exit = { code, signal }
      resolve()
    })
  })
  const killGroup = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // All processes of the group have ended.
    }
  }
  process.once('exit', killGroup)
  return {
    /** Undefined while the process runs. */
    exit: () => exit,
    terminate: () => void child.kill('SIGTERM'),
    /** Kills the process and its children. */
    async end(): Promise<void> {
      killGroup()
      process.removeListener('exit', killGroup)
      await ended
      // A process that has left the group may keep these open.
      child.stdout.destroy()
      child.stderr.destroy()
    },
    /** The last lines of its output. */
    recentOutput: () => output.trim(),
  }
}

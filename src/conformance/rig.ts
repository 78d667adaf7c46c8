/** The environment of one check: its own queue, its own worker process, and a proxy between it and the server. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Engine } from '../engine/engine.ts'
import { taskLifecycle } from '../kernel/task.ts'
import type { HeldTask } from '../protocol/tasks/sync.ts'
import type { EventView, TaskOptions, TaskView } from '../protocol/tasks/tasks.ts'
import { expect, Fault } from './check.ts'
import { type RecordingProxy, startProxy } from './proxy.ts'
import { startWorkerProcess, type WorkerProcess } from './worker-process.ts'

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

export interface Rig {
  readonly engine: Engine
  readonly queue: string
  readonly proxy: RecordingProxy
  readonly journal: Journal
  /** Starts the worker; a check does this once. */
  start(): WorkerProcess
  enqueue(payload: TestPayload, options?: TaskOptions): Promise<string>
  enqueueOther(type: string, options?: TaskOptions): Promise<string>
  /** Polls until `poll` finds something. Throws a fault after `seconds`, or if the worker exits meanwhile. */
  until<T>(fact: string, seconds: number, poll: () => PollResult<T>): Promise<T>
  /** Waits. Throws a fault if the worker exits meanwhile. */
  pause(seconds: number): Promise<void>
  /** Waits until the handler has begun the task, and returns the epoch. */
  begun(id: string, seconds?: number): Promise<number>
  ended(id: string, seconds?: number): Promise<TaskView>
  /** The event that ended a lease of the task. */
  endOf(id: string, epoch: number): Promise<EventView | undefined>
  /** The last lines of the worker's output. */
  recentOutput(): string
  close(): Promise<void>
}

export async function openRig(suite: SuiteContext, queue: string): Promise<Rig> {
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
  const until: Rig['until'] = async (fact, seconds, poll) => {
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
    start() {
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
    enqueue: (payload, options) => enqueueOther(testType, payload, options),
    enqueueOther: (type, options) => enqueueOther(type, {}, options),
    until,
    async pause(seconds) {
      const over = performance.now() + seconds * 1000
      await until('the pause is over', seconds + 5, () => performance.now() >= over)
    },
    begun: (id, seconds = 15) =>
      until('the handler wrote its "begin" line to PAWL_JOURNAL', seconds, () => journal.begun(id)[0]),
    ended: (id, seconds = 15) =>
      until('the task has ended', seconds, async () => {
        const task = await engine.task(id)
        return taskLifecycle.states[task.state].kind === 'final' && task
      }),
    async endOf(id, epoch) {
      const { items } = await engine.taskEvents(id)
      return items.find(event => event.epoch === epoch && isHeld(event.from) && !isHeld(event.to))
    },
    recentOutput: () => worker?.recentOutput() ?? '',
    async close() {
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

export interface Journal {
  readonly file: string
  entries(): Entry[]
  /** The epochs in which a handler began the task, in order. */
  begun(id: string): number[]
  ended(id: string): number[]
}

function readJournal(file: string): Journal {
  const entries = () => (existsSync(file) ? readFileSync(file, 'utf8') : '').split('\n').flatMap(parseEntry)
  const epochs = (word: Entry['word'], wanted: string) =>
    entries().flatMap(entry => (entry.word === word && entry.id === wanted ? [entry.epoch] : []))
  return {
    file,
    entries,
    begun: id => epochs('begin', id),
    ended: id => epochs('end', id),
  }
}

function parseEntry(line: string): Entry[] {
  const [, word, id, epoch] = /^(begin|end) (\S+) (\d+)$/.exec(line.trim()) ?? []
  return word === undefined ? [] : [{ word: word as Entry['word'], id: id!, epoch: Number(epoch) }]
}

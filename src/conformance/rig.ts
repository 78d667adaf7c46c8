/** What one check works with: a queue of its own, a worker process of its own, and a proxy between it and the server. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Engine } from '../engine/engine.ts'
import { taskLifecycle } from '../kernel/task.ts'
import type { HeldTask } from '../protocol/tasks/sync.ts'
import type { EventView, TaskOptions, TaskView } from '../protocol/tasks/tasks.ts'
import { expect, Fault } from './check.ts'
import { type RecordingProxy, startProxy } from './proxy.ts'
import { type Subject, startSubject } from './subject.ts'

/** What a task of the type `conformance` holds. */
export interface TestPayload {
  readonly do: 'succeed' | 'fail' | 'giveUp' | 'retryIn' | 'sleep'
  readonly seconds?: number
  readonly output?: unknown
  readonly message?: string
  /** Only the first so many attempts do it; later ones succeed. */
  readonly times?: number
}

const testType = 'conformance'
export const drainSeconds = 5

/** A lease that a check can wait for. */
export const shortLeaseSeconds = 6
export const shortLease: TaskOptions = { leaseSeconds: shortLeaseSeconds, heartbeatSeconds: 3 }
const quickRetry: TaskOptions = { retry: { attempts: 3, delaySeconds: 0.1, jitter: false } }

export interface Site {
  readonly engine: Engine
  readonly serverUrl: string
  readonly key: string
  readonly command: string
  readonly folder: string
  readonly signal: AbortSignal | undefined
}

type Looked<T> = T | undefined | false | Promise<T | undefined | false>

export interface Rig {
  readonly engine: Engine
  readonly queue: string
  readonly proxy: RecordingProxy
  readonly journal: Journal
  /** Starts the worker; a check does this once. */
  start(): Subject
  enqueue(payload: TestPayload, options?: TaskOptions): Promise<string>
  enqueueOther(type: string, options?: TaskOptions): Promise<string>
  /** The first thing that `look` finds. A fault, if it is not found in time or the worker ends meanwhile. */
  until<T>(fact: string, seconds: number, look: () => Looked<T>): Promise<T>
  /** Waits, and looks after the worker meanwhile. */
  pause(seconds: number): Promise<void>
  /** The handler has begun the task: answers with the epoch. */
  begun(id: string, seconds?: number): Promise<number>
  ended(id: string, seconds?: number): Promise<TaskView>
  /** The event by which a lease of this task ended. */
  endOf(id: string, epoch: number): Promise<EventView | undefined>
  /** The last lines that the worker wrote. */
  lastWords(): string
  close(): Promise<void>
}

export async function openRig(site: Site, queue: string): Promise<Rig> {
  const { engine, signal } = site
  const proxy = await startProxy(site.serverUrl)
  const journal = readJournal(join(site.folder, `${queue}.journal`))
  let subject: Subject | undefined
  let mayEnd = false

  const lookAfter = () => {
    if (signal?.aborted) throw new Fault('the suite was stopped')
    const exit = subject?.exit()
    if (exit === undefined || mayEnd) return
    throw new Fault(`the worker ended by itself (${exit.signal ?? `exit code ${exit.code}`})`)
  }
  const until: Rig['until'] = async (fact, seconds, look) => {
    const deadline = performance.now() + seconds * 1000
    for (;;) {
      const found = await look()
      if (found !== undefined && found !== false) return found
      lookAfter()
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
      const started = startSubject(site.command, {
        PAWL_SERVER: proxy.url,
        PAWL_KEY: site.key,
        PAWL_QUEUES: queue,
        PAWL_DRAIN_SECONDS: String(drainSeconds),
        PAWL_JOURNAL: journal.file,
      })
      subject = started
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
    lastWords: () => subject?.lastWords() ?? '',
    async close() {
      try {
        await subject?.end()
      } finally {
        await proxy.close()
      }
    },
  }
}

const isHeld = (state: string | null) => state === 'assigned' || state === 'running'

/** Its handler ran once and no more. */
export function expectOneRun({ journal }: Rig, id: string): void {
  const runs = journal.begun(id).length
  expect(runs === 1, `its handler ran ${runs} times instead of once`)
}

/**
 * The journal of the test handlers. Traffic alone cannot show that code has stopped, or that it has not begun yet, so the
 * handler writes a line to a file when it begins, and another when it has stopped, however it ends.
 */
export interface Entry extends HeldTask {
  readonly word: 'begin' | 'end'
}

export interface Journal {
  readonly file: string
  entries(): Entry[]
  /** The epochs under which a task was begun, in order. */
  begun(id: string): number[]
  ended(id: string): number[]
}

function readJournal(file: string): Journal {
  const entries = () => (existsSync(file) ? readFileSync(file, 'utf8') : '').split('\n').flatMap(entryIn)
  const epochs = (word: Entry['word'], wanted: string) =>
    entries().flatMap(entry => (entry.word === word && entry.id === wanted ? [entry.epoch] : []))
  return {
    file,
    entries,
    begun: id => epochs('begin', id),
    ended: id => epochs('end', id),
  }
}

function entryIn(line: string): Entry[] {
  const [, word, id, epoch] = /^(begin|end) (\S+) (\d+)$/.exec(line.trim()) ?? []
  return word === undefined ? [] : [{ word: word as Entry['word'], id: id!, epoch: Number(epoch) }]
}

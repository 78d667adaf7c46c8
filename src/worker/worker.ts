/**
 * The worker: claims into a buffer, runs handlers, reports, and keeps its leases alive (heartbeat.ts, reporter.ts). These
 * go on at once and share only the tasks in hand.
 */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { Problem } from '../kernel/problem.ts'
import type { ArtifactPort, SaidArtifact } from '../protocol/files/artifacts.ts'
import type { ClaimedTask, SettledTask, SyncPort } from '../protocol/tasks/sync.ts'
import { checkPayload, recordOf } from '../protocol/tasks/task-type.ts'
import { type Attempt, interrupt, nameOf, newAttempt, runAttempt } from './attempt.ts'
import { makeAttempts } from './attempts.ts'
import { type Connection, openConnection } from './connection.ts'
import type { TaskContext } from './context.ts'
import type { Task } from './define-task.ts'
import { makeHeartbeat } from './heartbeat.ts'
import { makeNotifier } from './notifier.ts'
import { batchSize, timings, type WorkerOptions, workerSettings } from './options.ts'
import { makeReporter } from './reporter.ts'
import { traceAttempt } from './trace.ts'

/** Works tasks of the given types until it is stopped. */
export function startWorker(engine: SyncPort, tasks: readonly Task[], options: WorkerOptions = {}): Worker {
  return new Worker(engine, tasks, options)
}

export class Worker {
  readonly name: string
  /** Resolves when it has stopped. */
  readonly stopped: Promise<void>

  readonly #settings
  readonly #tasks
  readonly #engine
  readonly #notifier = makeNotifier()
  readonly #connection
  readonly #attempts
  readonly #reporter
  readonly #heartbeat
  readonly #handlers: ReadonlyMap<string, Task>
  readonly #fetching = new AbortController()
  readonly #buffer: Attempt[] = []
  readonly #careful: Attempt[] = []
  #running = 0
  #alone: Attempt | undefined
  #syncs = 0
  #deadline: number | undefined

  constructor(engine: SyncPort, tasks: readonly Task[], options: WorkerOptions) {
    this.#engine = engine
    this.#tasks = tasks
    this.#settings = workerSettings(tasks, options, defaultName(process.env))
    this.#connection = openConnection(engine, this.#settings)
    this.#attempts = makeAttempts(this.#settings, this.#notifier)
    this.#reporter = makeReporter(this.#connection, this.#attempts, this.#settings)
    this.#heartbeat = makeHeartbeat(this.#connection, this.#attempts, this.#settings)
    this.#handlers = new Map(tasks.map(task => [task.type, task]))
    this.name = this.#settings.name
    this.stopped = this.#live()
  }

  /** Tasks in hand: buffered, running, or waiting for the answer to their report. */
  inHand(): number {
    return this.#attempts.active.size
  }

  /**
   * Claims no more, gives back what was not started, waits for the rest; at the deadline that is given back too. Said
   * again, it can bring the deadline nearer.
   */
  async stop(withinSeconds = this.#settings.drainSeconds): Promise<void> {
    const deadline = performance.now() + withinSeconds * 1000
    const isFirst = this.#deadline === undefined
    if (this.#deadline === undefined || deadline < this.#deadline) {
      this.#deadline = deadline
      // A store that is away must not keep it from stopping.
      setTimeout(this.#connection.close, withinSeconds * 1000 + timings.lastReportMs).unref()
    }
    if (isFirst) {
      this.#settings.log('worker.stopping', { worker: this.name, inHand: this.inHand() })
      for (const one of [...this.#buffer.splice(0), ...this.#careful.splice(0)]) this.#giveBack(one)
      this.#fetching.abort()
    }
    this.#notifier.notify()
    await this.stopped
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #live(): Promise<void> {
    const ending = new AbortController()
    const beating = this.#heartbeat.runHeartbeats(ending.signal)
    const { retryUntilAnswered } = this.#connection
    await Promise.all(
      this.#tasks.map(task =>
        retryUntilAnswered(() => this.#engine.putTaskType(task.type, { payloadSchema: null, ...recordOf(task) })),
      ),
    )
    await this.#fetch()
    await this.#drain()
    ending.abort()
    await beating
    this.#settings.log('worker.stopped', { worker: this.name, leftBehind: this.inHand() })
  }

  async #fetch(): Promise<void> {
    const { concurrency, buffer } = this.#settings
    while (this.#deadline === undefined) {
      const room = concurrency + buffer - this.#buffer.length - this.#running
      // Ask when half of the buffer is gone; alone with a careful task, not at all.
      const mayAsk = this.#careful.length === 0 && !this.#isAlone()
      if (room > buffer / 2 && mayAsk) await this.#claim(Math.min(room, batchSize))
      else {
        await this.#notifier.wait(timings.tickMs)
        this.#runNext()
      }
    }
  }

  /** One claiming sync, sent again with its id until it is answered, so that what it won cannot get lost. */
  async #claim(claim: number): Promise<void> {
    const { concurrency: slots, waitSeconds } = this.#settings
    const ask = { claim, slots, syncId: `${++this.#syncs}`, waitSeconds }
    await this.#connection.retryUntilAnswered(async () => {
      const sentAt = performance.now()
      const answer = await this.#connection.sync(ask, this.#fetching.signal)
      this.#attempts.applyAnswer(answer)
      for (const task of answer.claimed) this.#take(newAttempt(task, sentAt + answer.waitedMs))
    })
    this.#runNext()
  }

  #take(one: Attempt): void {
    this.#attempts.add(one)
    if (this.#deadline !== undefined) this.#giveBack(one)
    else if (one.task.careful) this.#careful.push(one)
    else this.#buffer.push(one)
  }

  #runNext(): void {
    if (this.#isAlone()) return
    while (this.#running < this.#settings.concurrency && this.#buffer.length > 0) {
      const one = this.#buffer.shift()!
      if (this.#mayBegin(one)) void this.#run(one)
    }
    if (this.#attempts.active.size > this.#careful.length) return
    const one = this.#careful.shift()
    if (one !== undefined) void this.#runCarefully(one)
  }

  /** Not what was called off while it waited here; nor what ran out, for it may be in other hands by now. */
  #mayBegin(one: Attempt): boolean {
    if (!this.#attempts.active.has(one)) return false
    if (one.interrupted === 'cancelled') this.#settle(one, { ...nameOf(one), outcome: 'cancelled' })
    else if (performance.now() >= one.leaseEndsAt) this.#giveBack(one, 'Its lease ran out before it began.')
    return one.settled === undefined
  }

  async #run(one: Attempt): Promise<void> {
    this.#running += 1
    const work = (payload: unknown, ctx: TaskContext) => this.#work(one.task, payload, ctx)
    const { saveCheckpoint } = this.#heartbeat
    const calls = {
      saveCheckpoint,
      completeIn: this.#completeIn,
      reportFiles: fileReporter(this.#connection),
      filesOf: fileReader(this.#engine),
    }
    const run = () => runAttempt(one, work, calls)
    const settled = await traceAttempt(one.task, this.name, run)
    this.#running -= 1
    this.#settle(one, settled)
    this.#runNext()
    if (this.#buffer.length <= this.#settings.buffer / 2) this.#notifier.notify()
  }

  #work(task: ClaimedTask, payload: unknown, ctx: TaskContext): Promise<unknown> {
    const handler = this.#handlers.get(task.type)
    if (handler === undefined) throw new Error(`This worker has no handler for tasks of type "${task.type}".`)
    if (handler.schema === undefined) return handler.run(payload, ctx)
    return checkPayload(handler, payload, 'payload').then(checked => handler.run(checked, ctx))
  }

  readonly #completeIn = async (tx: object, settled: SettledTask): Promise<void> => {
    if (this.#engine.completeIn === undefined) throw new Problem('TRANSACTION_REMOTE', { id: settled.id })
    await this.#engine.completeIn(tx, settled, this.name)
  }

  /** Until the report of a careful task has been answered: the next may kill this worker, and it would pay for it. */
  #isAlone(): boolean {
    return this.#alone !== undefined && this.#attempts.active.has(this.#alone)
  }

  /** A task that may have killed its worker: its start is acknowledged first, and nothing else is in hand meanwhile. */
  async #runCarefully(one: Attempt): Promise<void> {
    this.#alone = one
    if (this.#mayBegin(one)) {
      const answer = await this.#connection.retryUntilAnswered(
        () => this.#connection.sync({ started: [nameOf(one)] }),
        [one],
      )
      if (answer === undefined) this.#attempts.remove(one)
      else {
        one.startReported = true
        this.#attempts.applyAnswer(answer)
        if (this.#deadline !== undefined) this.#giveBack(one)
        else if (this.#mayBegin(one)) await this.#run(one)
      }
    }
    this.#notifier.notify()
  }

  #settle(one: Attempt, settled: SettledTask): void {
    if (one.settled !== undefined) return
    one.settled = settled
    if (this.#attempts.active.has(one)) this.#reporter.report(one)
  }

  #giveBack(one: Attempt, reason = 'The worker is shutting down.'): void {
    this.#settle(one, { ...nameOf(one), outcome: 'released', reason })
  }

  /** Waits for what is in hand; at the deadline handlers are told to stop, and what does not is given back. */
  async #drain(): Promise<void> {
    const { active } = this.#attempts
    while (active.size > 0 && performance.now() < this.#deadline!) await this.#notifier.wait(timings.tickMs)
    for (const one of active) interrupt(one, 'shutdown')
    await this.#notifier.wait(active.size > 0 ? timings.tickMs : 0)
    for (const one of active) this.#giveBack(one)
    const lastReportBy = performance.now() + timings.lastReportMs
    while (active.size > 0 && performance.now() < lastReportBy) await this.#notifier.wait(timings.tickMs)
    this.#connection.close()
  }
}

/** In Kubernetes, where the pod is told both (the downward API), people look for a worker by its node and pod. */
export function defaultName({ NODE_NAME, POD_NAME }: NodeJS.ProcessEnv): string {
  if (NODE_NAME && POD_NAME) return `${NODE_NAME}/${POD_NAME}`
  return `${hostname()}-${process.pid}-${randomBytes(2).toString('hex')}`
}

const filesPerSync = 1000

/** Says what becomes of files, sent again until it is answered; what the engine refuses is thrown. */
function fileReporter(connection: Connection) {
  return async (held: Attempt, files: readonly SaidArtifact[]): Promise<void> => {
    const lease = nameOf(held)
    for (let from = 0; from < files.length; from += filesPerSync) {
      const artifacts = files.slice(from, from + filesPerSync).map(file => ({ ...file, ...lease }))
      const answer = await connection.retryUntilAnswered(() => connection.sync({ artifacts }))
      if (answer === undefined) throw new Problem('LEASE_LOST', { ...lease })
      const refusal = answer.refused.find(({ id, epoch }) => id === lease.id && epoch === lease.epoch)
      if (refusal !== undefined) throw new Problem(refusal.code, { ...lease, why: refusal.message })
    }
  }
}

/** Reads what a stage has put in its place. */
function fileReader(engine: SyncPort): ArtifactPort['ofStage'] {
  return async function* (stageId, prefix) {
    if (engine.stageFiles === undefined) throw new Error('The engine of this worker keeps no account of files.')
    for (let cursor: string | undefined; ; ) {
      const ask = { ...(prefix !== '' && { prefix }), limit: filesPerSync, ...(cursor !== undefined && { cursor }) }
      const { items, next } = await engine.stageFiles(stageId, ask)
      yield items
      if (next === null) return
      cursor = next
    }
  }
}

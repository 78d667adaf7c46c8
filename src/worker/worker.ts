/**
 * The worker: claims into a buffer, runs handlers, reports results, and keeps its leases alive (reporter.ts).
 * These run concurrently and share only the active attempts.
 */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { Problem } from '../kernel/problem.ts'
import type { CallerTransaction } from '../kernel/transactions.ts'
import { checkPayload } from '../protocol/tasks/new-task.ts'
import type { ClaimedTask, SettledTask, SyncPort } from '../protocol/tasks/sync.ts'
import { recordOf } from '../protocol/tasks/type-record.ts'
import { type Attempt, type EngineCalls, interrupt, nameOf, newAttempt, runAttempt } from './attempt.ts'
import { makeAttempts, makeNotifier, traceAttempt } from './attempts.ts'
import { openConnection } from './connection.ts'
import type { Task, TaskContext } from './define-task.ts'
import { fileReader, fileReporter, jobReader } from './engine-reads.ts'
import { batchSize, timings, type WorkerOptions, workerSettings } from './options.ts'
import { makeHeartbeat, makeReporter } from './reporter.ts'

/**
 * Starts a worker that runs tasks of the given types until it is stopped.
 *
 * @example
 * const worker = startWorker(engine, [resize], { concurrency: 20 })
 * process.once('SIGTERM', () => worker.stop())
 */
export function startWorker(engine: SyncPort, tasks: readonly Task[], options: WorkerOptions = {}): Worker {
  return new Worker(engine, tasks, options)
}

/** A running worker, as returned by `startWorker`. */
export class Worker {
  readonly name: string
  /** Resolves when the worker has stopped. */
  readonly stopped: Promise<void>

  readonly #settings
  readonly #tasks
  readonly #engine
  readonly #notifier = makeNotifier()
  readonly #connection
  readonly #attempts
  readonly #reporter
  readonly #heartbeat
  readonly #calls: EngineCalls
  readonly #handlers: ReadonlyMap<string, Task>
  readonly #claiming = new AbortController()
  readonly #buffer: Attempt[] = []
  readonly #careful: Attempt[] = []
  #running = 0
  #carefulAttempt: Attempt | undefined
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
    this.#calls = {
      saveCheckpoint: this.#heartbeat.saveCheckpoint,
      completeIn: this.#completeIn,
      reportFiles: fileReporter(this.#connection),
      filesOf: fileReader(engine),
      jobOfStage: jobReader(engine),
    }
    this.name = this.#settings.name
    this.stopped = this.#runAll()
  }

  /** Number of tasks held: buffered, running, or waiting for their report to be acknowledged. */
  inHand(): number {
    return this.#attempts.active.size
  }

  /**
   * Stops claiming, releases tasks that have not started, and waits for the others. At the deadline those are released
   * too. A second call can only bring the deadline forward.
   */
  async stop(withinSeconds = this.#settings.drainSeconds): Promise<void> {
    const deadline = performance.now() + withinSeconds * 1000
    const isFirst = this.#deadline === undefined
    if (this.#deadline === undefined || deadline < this.#deadline) {
      this.#deadline = deadline
      // An unreachable store must not keep the worker from stopping.
      const extraMs = timings.handlerStopMs + timings.lastReportMs
      setTimeout(this.#connection.close, withinSeconds * 1000 + extraMs).unref()
    }
    if (isFirst) {
      this.#settings.log('worker.stopping', { worker: this.name, inHand: this.inHand() })
      for (const one of [...this.#buffer.splice(0), ...this.#careful.splice(0)]) this.#release(one)
      this.#claiming.abort()
    }
    this.#notifier.notify()
    await this.stopped
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  async #runAll(): Promise<void> {
    const ending = new AbortController()
    const beating = this.#heartbeat.runHeartbeats(ending.signal)
    const { retryUntilAnswered } = this.#connection
    await Promise.all(
      this.#tasks.map(task =>
        retryUntilAnswered(() => this.#engine.putTaskType(task.type, { payloadSchema: null, ...recordOf(task) })),
      ),
    )
    await this.#claimLoop()
    await this.#drain()
    ending.abort()
    await beating
    this.#settings.log('worker.stopped', { worker: this.name, leftBehind: this.inHand() })
  }

  async #claimLoop(): Promise<void> {
    const { concurrency, buffer } = this.#settings
    while (this.#deadline === undefined) {
      const room = concurrency + buffer - this.#buffer.length - this.#running
      // Claim when half of the buffer is empty, but never next to a careful task.
      const mayAsk = this.#careful.length === 0 && !this.#isCarefulRunning()
      if (room > buffer / 2 && mayAsk) await this.#claim(Math.min(room, batchSize))
      else {
        await this.#notifier.wait(timings.tickMs)
        this.#runNext()
      }
    }
  }

  /** Sends one claim, repeated with the same id until it is answered, so that claimed tasks cannot get lost. */
  async #claim(claim: number): Promise<void> {
    const { concurrency: slots, waitSeconds } = this.#settings
    const ask = { claim, slots, syncId: `${++this.#syncs}`, waitSeconds }
    await this.#connection.retryUntilAnswered(async () => {
      const sentAt = performance.now()
      const answer = await this.#connection.sync(ask, this.#claiming.signal)
      this.#attempts.applyAnswer(answer)
      for (const task of answer.claimed) this.#accept(newAttempt(task, sentAt + answer.waitedMs))
    })
    this.#runNext()
  }

  #accept(one: Attempt): void {
    this.#attempts.add(one)
    if (this.#deadline !== undefined) this.#release(one)
    else if (one.task.careful) this.#careful.push(one)
    else this.#buffer.push(one)
  }

  #runNext(): void {
    if (this.#isCarefulRunning()) return
    while (this.#running < this.#settings.concurrency && this.#buffer.length > 0) {
      const one = this.#buffer.shift()!
      if (this.#mayStart(one)) void this.#run(one)
    }
    if (this.#attempts.active.size > this.#careful.length) return
    const one = this.#careful.shift()
    if (one !== undefined) void this.#runCareful(one)
  }

  /** Not if it was cancelled while it waited here, or if its lease ran out: another worker may hold it by now. */
  #mayStart(one: Attempt): boolean {
    if (!this.#attempts.active.has(one)) return false
    if (one.interrupted === 'cancelled') this.#settle(one, { ...nameOf(one), outcome: 'cancelled' })
    else if (performance.now() >= one.leaseEndsAt) this.#release(one, 'Its lease expired before it started.')
    return one.settled === undefined
  }

  async #run(one: Attempt): Promise<void> {
    this.#running += 1
    const work = (payload: unknown, ctx: TaskContext) => this.#work(one.task, payload, ctx)
    const settled = await traceAttempt(one.task, this.name, () => runAttempt(one, work, this.#calls))
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

  readonly #completeIn = async (tx: CallerTransaction, settled: SettledTask): Promise<void> => {
    if (this.#engine.completeIn === undefined) throw new Problem('TRANSACTION_REMOTE', { id: settled.id })
    await this.#engine.completeIn(tx, settled, this.name)
  }

  /**
   * True until the report of a careful task is acknowledged. The next task may kill this worker, and the careful one
   * would be charged for it.
   */
  #isCarefulRunning(): boolean {
    return this.#carefulAttempt !== undefined && this.#attempts.active.has(this.#carefulAttempt)
  }

  /**
   * Runs a task that may have killed its last worker: its start is acknowledged first, and nothing else runs meanwhile.
   */
  async #runCareful(one: Attempt): Promise<void> {
    this.#carefulAttempt = one
    if (this.#mayStart(one)) {
      const answer = await this.#connection.retryUntilAnswered(
        () => this.#connection.sync({ started: [nameOf(one)] }),
        [one],
      )
      if (answer === undefined) this.#attempts.remove(one)
      else {
        one.startReported = true
        this.#attempts.applyAnswer(answer)
        if (this.#deadline !== undefined) this.#release(one)
        else if (this.#mayStart(one)) await this.#run(one)
      }
    }
    this.#notifier.notify()
  }

  #settle(one: Attempt, settled: SettledTask): void {
    if (one.settled !== undefined) return
    one.settled = settled
    if (this.#attempts.active.has(one)) this.#reporter.report(one)
  }

  #release(one: Attempt, reason = 'The worker is shutting down.'): void {
    this.#settle(one, { ...nameOf(one), outcome: 'released', reason })
  }

  /**
   * Waits for active attempts. At the deadline it tells handlers to stop. A task is released when its handler has
   * stopped, so that no part of it is still running when another worker claims it, or when the handler takes too long.
   */
  async #drain(): Promise<void> {
    const { active } = this.#attempts
    while (active.size > 0 && performance.now() < this.#deadline!) await this.#notifier.wait(timings.tickMs)
    for (const one of active) interrupt(one, 'shutdown')
    const stoppedBy = performance.now() + timings.handlerStopMs
    while (this.#running > 0 && performance.now() < stoppedBy) await this.#notifier.wait(timings.tickMs)
    for (const one of active) this.#release(one)
    const lastReportBy = performance.now() + timings.lastReportMs
    while (active.size > 0 && performance.now() < lastReportBy) await this.#notifier.wait(timings.tickMs)
    this.#connection.close()
  }
}

/** In Kubernetes, people look for a worker by its node and pod (provided by the downward API). */
export function defaultName({ NODE_NAME, POD_NAME }: NodeJS.ProcessEnv): string {
  if (NODE_NAME && POD_NAME) return `${NODE_NAME}/${POD_NAME}`
  return `${hostname()}-${process.pid}-${randomBytes(2).toString('hex')}`
}

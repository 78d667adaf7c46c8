import { Problem, type ProblemCode } from '../kernel/problem.ts'
import { leaseOf, type Refusal, type SettledTask } from '../protocol/tasks/sync.ts'
import { type Attempt, correlationsOf, nameOf, traceOf } from './attempt.ts'
import type { Attempts } from './attempts.ts'
import { type Connection, isRetryable } from './connection.ts'
import { batchSize, logBytesPerSync, type WorkerSettings } from './options.ts'

/**
 * Sends the reports of finished attempts until the engine acknowledges each of them. A failure on the way is not the
 * handler's fault and is never reported as one. The worker's clock does not end it either, because only the fence knows
 * whether the lease still holds. Attempts that finish while an answer is pending go into the next report, so a busy
 * worker builds large batches by itself.
 */
export function makeReporter(connection: Connection, attempts: Attempts, { name: worker, log }: WorkerSettings) {
  const waiting: Attempt[] = []
  const replaced = new WeakSet<Attempt>()
  let isSending = false
  let most = batchSize
  let failures = 0

  async function send(): Promise<void> {
    isSending = true
    // Include everything else that ends in this turn of the event loop.
    await new Promise(setImmediate)
    while (waiting.length > 0 && !connection.isClosed()) {
      const batch = waiting.splice(0, fitting(waiting, most))
      try {
        const answer = await connection.tryOnce(() => connection.sync({ settled: batch.map(withLog) }))
        if (answer === undefined) waiting.unshift(...batch)
        else {
          heedAll(batch, answer.refused)
          // Locked tasks are reported again, and the pause grows while nothing else gets through.
          if (answer.refused.some(isBusy)) await connection.pauseAfter(++failures)
          else failures = 0
        }
      } catch (error) {
        failures += 1
        log('sync.failed', { worker, tries: failures, ...correlationsOf(batch), error: String(error) })
        setBack(batch, error)
        await connection.pauseAfter(failures)
      }
    }
    for (const one of waiting.splice(0)) abandon(one)
    isSending = false
  }

  function heedAll(batch: readonly Attempt[], refused: readonly Refusal[]): void {
    most = Math.min(batchSize, most * 2)
    const refusals = new Map(refused.map(refusal => [leaseOf(refusal), refusal]))
    for (const one of batch) applyAnswer(one, refusals.size === 0 ? undefined : refusals.get(leaseOf(one.task)))
  }

  function applyAnswer(one: Attempt, refusal: Refusal | undefined): void {
    if (refusal !== undefined) log('task.refused', { ...refusal, ...traceOf(one), worker })
    if (refusal === undefined || refusal.code === 'LEASE_LOST') attempts.remove(one)
    else if (isBusy(refusal)) waiting.push(one)
    else replace(one, refusal)
  }

  /**
   * A failed request says nothing about its reports if it can simply be repeated. Otherwise the batch is halved, so
   * that a report that the engine cannot accept ends up alone. It goes behind the others, so that they need not wait
   * for it.
   */
  function setBack(batch: readonly Attempt[], error: unknown): void {
    const [one] = batch
    if (isRetryable(error)) waiting.unshift(...batch)
    else if (batch.length > 1) {
      most = Math.max(1, batch.length >> 1)
      waiting.push(...batch)
    } else if (isAboutReport(one!, error)) {
      replace(one!, { ...nameOf(one!), code: codeOf(error), message: (error as Error).message })
    } else waiting.push(one!)
  }

  /** The engine can never accept this report, so send one that says so. If that fails too, the lease runs out. */
  function replace(one: Attempt, refusal: Refusal): void {
    if (replaced.has(one)) {
      attempts.remove(one)
      return
    }
    replaced.add(one)
    one.settled = replacementFor(one.settled!, refusal)
    waiting.push(one)
  }

  /** The attempt stays held, because nobody has acknowledged it. */
  function abandon(one: Attempt): void {
    const { outcome } = one.settled!
    log('report.abandoned', { ...nameOf(one), outcome, ...traceOf(one), worker })
  }

  return {
    /** `one` has been settled. */
    report(one: Attempt): void {
      waiting.push(one)
      if (!isSending) void send()
    },
  }
}

const isBusy = ({ code }: Refusal) => code === 'TASK_BUSY'

/** Whether the report itself was rejected, by the engine or on the way, because it is too large or not JSON. */
function isAboutReport({ settled }: Attempt, error: unknown): boolean {
  if (error instanceof Problem) return error.status < 500
  try {
    JSON.stringify(settled)
    return false
  } catch {
    return true
  }
}

const codeOf = (error: unknown): ProblemCode => (error instanceof Problem ? error.code : 'PAYLOAD_INVALID')

/**
 * A result that can never be stored goes to the dead-letter queue without a retry, because the next attempt would have
 * the same result. Registered files that were not uploaded are missing work, so that attempt has failed.
 */
function replacementFor({ id, epoch }: SettledTask, { code, message }: Refusal): SettledTask {
  if (code === 'FILES_UNFINISHED') return { id, epoch, outcome: 'failed', error: { message, step: 'output' } }
  const error = { message, step: 'output', reasonCode: 'validation_failed' } as const
  return { id, epoch, outcome: 'dead_lettered', error }
}

/** The number of reports for one sync: at least one, and no more log lines than fit. */
function fitting(waiting: readonly Attempt[], atMost: number): number {
  let bytes = 0
  const most = Math.min(waiting.length, atMost)
  for (let index = 0; index < most; index++) {
    bytes += waiting[index]!.log?.bytes() ?? 0
    if (bytes > logBytesPerSync) return Math.max(1, index)
  }
  return most
}

/** Log lines that no heartbeat has carried go with the report, and again if the report is repeated. */
function withLog(one: Attempt): SettledTask {
  const logs = one.log?.last(performance.now()) ?? []
  return logs.length === 0 ? one.settled! : { ...one.settled!, logs }
}

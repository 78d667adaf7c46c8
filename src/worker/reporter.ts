import { setTimeout as sleep } from 'node:timers/promises'
import { Problem, type ProblemCode } from '../kernel/problem.ts'
import type { ArtifactReport } from '../protocol/files/artifacts.ts'
import { leaseOf, type Refusal, type SettledTask, type SyncAnswer } from '../protocol/tasks/sync.ts'
import { type Attempt, correlationsOf, interrupt, nameOf, traceOf } from './attempt.ts'
import type { Attempts } from './attempts.ts'
import { type Connection, isRetryable } from './connection.ts'
import { logFailure } from './failure-log.ts'
import { batchSize, logBytesPerSync, timings, type WorkerSettings } from './options.ts'

/**
 * Sends the reports of finished attempts until the engine acknowledges each of them. A failure on the way is not the
 * handler's fault and is never reported as one. The worker's clock does not end it either, because only the fence knows
 * whether the lease still holds. Attempts that finish while an answer is pending go into the next report, so a busy
 * worker builds large batches by itself.
 */
export function makeReporter(connection: Connection, attempts: Attempts, settings: WorkerSettings) {
  const { name: worker, log } = settings
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
        const answer = await connection.tryOnce(() =>
          connection.sync({ settled: batch.map(withLog), ...uploadsOf(batch) }),
        )
        if (answer === undefined) waiting.unshift(...batch)
        else {
          heedAll(batch, answer)
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

  function heedAll(batch: readonly Attempt[], { refused, failed = [] }: SyncAnswer): void {
    most = Math.min(batchSize, most * 2)
    const refusals = new Map(refused.map(refusal => [leaseOf(refusal), refusal]))
    const failures = new Map(failed.map(failure => [leaseOf(failure), failure]))
    for (const one of batch) {
      const refusal = refusals.size === 0 ? undefined : refusals.get(leaseOf(one.task))
      applyAnswer(one, refusal)
      if (refusal === undefined) logFailure(one, failures.get(leaseOf(one.task)), settings)
    }
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
    logFailure(one, undefined, settings)
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

/** The number of reports for one sync: at least one, and no more log lines and files than fit. */
function fitting(waiting: readonly Attempt[], atMost: number): number {
  let bytes = 0
  const most = Math.min(waiting.length, atMost)
  for (let index = 0; index < most; index++) {
    const { log, uploads } = waiting[index]!
    bytes += log?.bytes() ?? 0
    for (const { name, uri } of uploads ?? []) bytes += name.length + uri.length + bytesPerFile
    if (bytes > logBytesPerSync) return Math.max(1, index)
  }
  return most
}

/** More than the other fields of a file take, so that a sync contains no more files than the engine accepts. */
const bytesPerFile = 400

/** The engine records files before it settles, and refuses the success of an attempt whose files it does not have. */
function uploadsOf(batch: readonly Attempt[]): { artifacts?: ArtifactReport[] } {
  const succeeded = batch.filter(({ settled }) => settled?.outcome === 'succeeded')
  const artifacts = succeeded.flatMap(one => (one.uploads ?? []).map(file => ({ ...file, ...nameOf(one) })))
  return artifacts.length === 0 ? {} : { artifacts }
}

/** Log lines that no heartbeat has carried go with the report, and again if the report is repeated. */
function withLog(one: Attempt): SettledTask {
  const logs = one.log?.last(performance.now()) ?? []
  return logs.length === 0 ? one.settled! : { ...one.settled!, logs }
}

/** Keeps leases alive: reports starts, renews leases at half time, sends progress, and detects expired leases. */
export function makeHeartbeat(connection: Connection, attempts: Attempts, { name: worker, log }: WorkerSettings) {
  async function beat(ones: readonly Attempt[]): Promise<readonly Refusal[]> {
    const sentAt = performance.now()
    const carried = ones.map(one => ({ one, sent: one.unsent, logs: one.log?.unsent(sentAt) }))
    for (const one of ones) one.unsent = {}
    const started = ones.filter(isStartUnreported)
    try {
      const saying = connection.sync({
        started: started.map(one => ({ ...nameOf(one), agoMs: sentAt - one.startedAt! })),
        beats: carried.map(({ one, sent, logs }) => ({ ...nameOf(one), ...sent, ...(logs && { logs }) })),
      })
      const over = saying.catch(() => {})
      for (const one of ones) one.beating = over
      const answer = await saying
      const refused = new Set(answer.refused.map(leaseOf))
      for (const one of started) one.startReported = true
      for (const { one, logs } of carried) {
        if (refused.has(leaseOf(one.task))) continue
        // Counted from when the request was sent: the engine cannot have renewed the lease earlier.
        one.leaseEndsAt = sentAt + one.task.leaseSeconds * 1000
        if (logs !== undefined) one.log?.acknowledge(logs)
      }
      const busy = new Set(answer.refused.filter(({ code }) => code === 'TASK_BUSY').map(leaseOf))
      for (const { one, sent } of carried) if (busy.has(leaseOf(one.task))) one.unsent = { ...sent, ...one.unsent }
      attempts.applyAnswer(answer)
      return answer.refused
    } catch (error) {
      for (const { one, sent } of carried) one.unsent = { ...sent, ...one.unsent }
      throw error
    } finally {
      for (const one of ones) one.beating = undefined
    }
  }

  function attemptsDue(now: number): Attempt[] {
    const ones = [...attempts.active]
    // The lease of an attempt that has not started may still be renewed. It is checked again before the start.
    for (const one of ones) if (one.startedAt !== undefined && now >= one.leaseEndsAt) interrupt(one, 'lease-lost')
    // The rest follows in the next heartbeat.
    return ones.filter(one => one.beating === undefined && !isLost(one) && needsBeat(one, now)).slice(0, batchSize)
  }

  return {
    /** Resolves when the engine has stored the value; rejects if the lease is lost. */
    async saveCheckpoint(one: Attempt, value: unknown): Promise<void> {
      one.unsent.checkpoint = value
      const refused = await connection.retryUntilAnswered(async () => {
        while (one.beating !== undefined) await one.beating
        const refused = await beat([one])
        if (refused.some(({ code }) => code === 'TASK_BUSY')) throw new Problem('TASK_BUSY', { ...nameOf(one) })
        return refused
      }, [one])
      if (one.interrupted === 'lease-lost') throw new Problem('LEASE_LOST', { ...nameOf(one) })
      if (refused === undefined) throw new Problem('STORE_UNAVAILABLE', { ...nameOf(one) })
      const refusal = refused.find(({ id }) => id === one.task.id)
      if (refusal !== undefined) throw new Problem(refusal.code, { ...nameOf(one), why: refusal.message })
    },
    async runHeartbeats(signal: AbortSignal): Promise<void> {
      let isBeating = false
      while (!signal.aborted) {
        await sleep(timings.tickMs, undefined, { signal }).catch(() => {})
        const ones = attemptsDue(performance.now())
        if (isBeating || ones.length === 0) continue
        isBeating = true
        beat(ones)
          .catch(error => log('sync.failed', { worker, part: 'beat', ...correlationsOf(ones), error: String(error) }))
          .finally(() => {
            isBeating = false
          })
      }
    },
  }
}

/** An ended attempt needs no separate start, because its report implies one. */
function isStartUnreported({ startedAt, startReported, settled }: Attempt): boolean {
  return startedAt !== undefined && !startReported && settled === undefined
}

/**
 * Its handler was told to stop, so nobody wants the lease any more, even if the engine has not taken it back yet. If the
 * handler succeeded all the same, the result counts as long as the lease lasts.
 */
const isLost = ({ hardInterrupted, settled }: Attempt) =>
  hardInterrupted === 'lease-lost' && settled?.outcome !== 'succeeded'

/** A start is reported once the task has run for a moment. A lease is renewed when half of it is left. */
function needsBeat(one: Attempt, now: number): boolean {
  const isUnreported = isStartUnreported(one) && now - one.startedAt! > timings.reportStartMs
  const isHalfGone = one.leaseEndsAt - now < (one.task.leaseSeconds * 1000) / 2
  return (
    isUnreported ||
    isHalfGone ||
    one.unsent.progress !== undefined ||
    (one.log?.waitedMs(now) ?? 0) > timings.sendLogsMs
  )
}

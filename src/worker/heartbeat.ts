/** Keeps leases alive: reports starts, renews leases at half time, sends progress, and detects expired leases. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Problem } from '../kernel/problem.ts'
import { leaseOf, type Refusal } from '../protocol/tasks/sync.ts'
import { type Attempt, correlationsOf, interrupt, nameOf } from './attempt.ts'
import type { Attempts } from './attempts.ts'
import type { Connection } from './connection.ts'
import { batchSize, timings, type WorkerSettings } from './options.ts'

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

/** Keeps leases alive: tells starts, renews at half, carries progress, and notices by itself when a lease is over. */
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
        // Counted from when it was sent: the engine cannot have renewed it earlier.
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
    // What has not begun may still be regained; it is looked at again before it begins.
    for (const one of ones) if (one.startedAt !== undefined && now >= one.leaseEndsAt) interrupt(one, 'lease-lost')
    // What is beyond a batch comes with the next look.
    return ones.filter(one => one.beating === undefined && needsBeat(one, now)).slice(0, batchSize)
  }

  return {
    /** Resolves when the engine has the value; rejects if the task is not ours any more. */
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

/** What has ended needs no start any more: its report says so, too. */
function isStartUnreported({ startedAt, startReported, settled }: Attempt): boolean {
  return startedAt !== undefined && !startReported && settled === undefined
}

/** A start is told once the task has run for a moment; a lease is renewed when half of it is left. */
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

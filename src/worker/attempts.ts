/** All attempts that this worker holds. A task that was lost and claimed again appears twice, under two epochs. */
import { leaseOf, type SyncAnswer } from '../protocol/tasks/sync.ts'
import { type Attempt, interrupt, traceOf } from './attempt.ts'
import type { Notifier } from './notifier.ts'
import type { WorkerSettings } from './options.ts'

export interface Attempts {
  readonly active: ReadonlySet<Attempt>
  add(one: Attempt): void
  remove(one: Attempt): void
  /** Handles lost leases and cancel requests, which any answer may contain. */
  applyAnswer(answer: SyncAnswer): void
}

export function makeAttempts({ name: worker, log }: WorkerSettings, notifier: Notifier): Attempts {
  const active = new Set<Attempt>()
  const remove = (one: Attempt) => {
    active.delete(one)
    if (active.size === 0) notifier.notify()
  }
  const apply = ({ refused, cancel }: SyncAnswer) => {
    const byLease = new Map([...active].map(one => [leaseOf(one.task), one]))
    for (const refusal of refused) {
      const lost = byLease.get(leaseOf(refusal))
      // A task that its handler has completed is no longer held, but not lost either.
      if (lost === undefined || lost.settled !== undefined || lost.completed !== undefined) continue
      log('task.refused', { ...refusal, ...traceOf(lost), worker })
      if (refusal.code !== 'LEASE_LOST') continue
      interrupt(lost, 'lease-lost')
      // An attempt that has not started is dropped at once; a running one is dropped when it stops.
      if (lost.startedAt === undefined) remove(lost)
    }
    for (const notice of cancel) {
      const called = byLease.get(leaseOf(notice))
      if (called !== undefined) interrupt(called, 'cancelled', notice.graceSeconds)
    }
  }
  return {
    active,
    add: one => void active.add(one),
    remove,
    applyAnswer(answer) {
      if (answer.refused.length > 0 || answer.cancel.length > 0) apply(answer)
    },
  }
}

/** All that this worker holds. A task that it lost and claimed again is there twice, under two epochs. */
import { leaseOf, type SyncAnswer } from '../protocol/tasks/sync.ts'
import type { Bell } from './bell.ts'
import { type InHand, interrupt, traceOf } from './held-task.ts'
import type { WorkerSettings } from './options.ts'

export interface Hands {
  readonly held: ReadonlySet<InHand>
  take(one: InHand): void
  letGo(one: InHand): void
  /** What every answer may hold: tasks that are not ours any more, and tasks that are to stop. */
  heed(answer: SyncAnswer): void
}

export function makeHands({ name: worker, log }: WorkerSettings, bell: Bell): Hands {
  const held = new Set<InHand>()
  const letGo = (one: InHand) => {
    held.delete(one)
    if (held.size === 0) bell.ring()
  }
  const heed = ({ refused, cancel }: SyncAnswer) => {
    const byLease = new Map([...held].map(one => [leaseOf(one.task), one]))
    for (const refusal of refused) {
      const lost = byLease.get(leaseOf(refusal))
      // What its handler has ended itself is not held any more, and not lost.
      if (lost === undefined || lost.settled !== undefined || lost.completed !== undefined) continue
      log('task.refused', { ...refusal, ...traceOf(lost), worker })
      if (refusal.code !== 'LEASE_LOST') continue
      interrupt(lost, 'lease-lost')
      // What has not begun is simply dropped; what runs is dropped when it stops.
      if (lost.startedAt === undefined) letGo(lost)
    }
    for (const notice of cancel) {
      const called = byLease.get(leaseOf(notice))
      if (called !== undefined) interrupt(called, 'cancelled', notice.graceSeconds)
    }
  }
  return {
    held,
    take: one => void held.add(one),
    letGo,
    heed(answer) {
      if (answer.refused.length > 0 || answer.cancel.length > 0) heed(answer)
    },
  }
}

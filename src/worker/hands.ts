/** All that this worker holds, by task and epoch. */
import type { HeldTask, SyncAnswer } from '../protocol/sync.ts'
import type { Bell } from './bell.ts'
import { type InHand, interrupt } from './held-task.ts'
import type { WorkerSettings } from './options.ts'

export interface Hands {
  readonly held: ReadonlyMap<string, InHand>
  take(one: InHand): void
  letGo(one: HeldTask): void
  has(one: HeldTask): boolean
  /** What every answer may hold: tasks that are not ours any more, and tasks that are to stop. */
  heed(answer: SyncAnswer): void
}

export const keyOf = ({ id, epoch }: HeldTask) => `${id} ${epoch}`

export function makeHands({ name: worker, log }: WorkerSettings, bell: Bell): Hands {
  const held = new Map<string, InHand>()
  const letGo = (one: HeldTask) => {
    held.delete(keyOf(one))
    if (held.size === 0) bell.ring()
  }
  return {
    held,
    take: one => void held.set(keyOf(one.task), one),
    letGo,
    has: one => held.has(keyOf(one)),
    heed(answer) {
      for (const refusal of answer.refused) {
        const lost = held.get(keyOf(refusal))
        if (lost === undefined || lost.settled !== undefined) continue
        log('task.refused', { ...refusal, worker })
        if (refusal.code !== 'LEASE_LOST') continue
        interrupt(lost, 'lease-lost')
        // What has not begun is simply dropped; what runs is dropped when it stops.
        if (lost.startedAt === undefined) letGo(refusal)
      }
      for (const notice of answer.cancel) {
        const called = held.get(keyOf(notice))
        if (called !== undefined) interrupt(called, 'cancelled')
      }
    },
  }
}

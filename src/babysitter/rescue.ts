/**
 * Takes tasks back from workers that stopped renewing their lease, and ends attempts that ran for too long.
 *
 * A babysitter that could not look for longer than a heartbeat (the store was down, the machine asleep, or it has
 * just been started) knows nothing about who is alive: it first gives everyone two heartbeats to come back, and what
 * it finds then is not charged.
 */
import { loseLease, timeOut } from '../kernel/decide.ts'
import { defaultSettings } from '../kernel/settings.ts'
import { clockMs } from '../store/driver/clock.ts'
import { findExpiredLeases } from '../store/tasks/task-chores.ts'
import type { LockedTask } from '../store/tasks/task-updates.ts'
import type { Chore } from './chore.ts'
import { judge } from './judge.ts'

const claimsPerLook = 100

export interface RescueOptions {
  /** A clock that only rises, in milliseconds. */
  readonly now?: () => number
  /** Whether a babysitter that begins must first wait; off where it is known that nothing was missed. */
  readonly beginsBlind?: boolean
  /** A look that comes later than this was missed. Default: the default heartbeat. */
  readonly heartbeatSeconds?: number
}

export function rescue({
  now = () => performance.now(),
  beginsBlind = true,
  heartbeatSeconds = defaultSettings.heartbeatSeconds!,
}: RescueOptions = {}): Chore {
  const heartbeatMs = heartbeatSeconds * 1000
  let lookedAt = beginsBlind ? Number.NEGATIVE_INFINITY : now()
  let blindUntil = Number.NEGATIVE_INFINITY
  return {
    name: 'rescue',
    everySeconds: 1,
    async run(context) {
      // Only a look that was answered counts as having looked.
      await clockMs(context.sql)
      const at = now()
      if (at - lookedAt > heartbeatMs) blindUntil = at + 2 * heartbeatMs
      lookedAt = at
      if (at < blindUntil) return { rescued: 0, isBlind: true }
      const sightedSeconds = (at - blindUntil) / 1000
      const ids = await findExpiredLeases(context.sql, claimsPerLook)
      const { moved, failed } = await judge(context, ids, task => decide(task, sightedSeconds))
      return { rescued: moved, failed, more: moved > 0 }
    },
  }
}

/** Charged is only what was lost while this babysitter could see. */
function decide(task: LockedTask, sightedSeconds: number) {
  const { timeoutSeconds } = task.settings
  if (task.state !== 'assigned' && task.state !== 'running') return undefined
  if (task.lapsedForSeconds !== null) return loseLease(task, { charged: task.lapsedForSeconds < sightedSeconds })
  const isLate = timeoutSeconds !== null && task.ranSeconds !== null && task.ranSeconds >= timeoutSeconds
  return isLate && task.state === 'running' ? timeOut(task, Math.random()) : undefined
}

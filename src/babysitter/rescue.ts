/**
 * Takes tasks back from workers that stopped renewing their lease, and ends attempts that exceeded their timeout.
 *
 * A babysitter that has not run for longer than a heartbeat (the store was down, the machine was asleep, or the process
 * has just started) cannot know which workers are alive. It first gives all of them two heartbeats to come back, and
 * does not charge losses from that time.
 */
import { loseLease, timeOut } from '../kernel/decide.ts'
import { defaultSettings } from '../kernel/settings.ts'
import { clockMs } from '../store/driver/clock.ts'
import { findExpiredLeases } from '../store/tasks/task-chores.ts'
import type { LockedTask } from '../store/tasks/task-updates.ts'
import { applyVerdicts, type Chore } from './chore.ts'

const claimsPerRun = 100

export interface RescueOptions {
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number
  /** Whether a new babysitter must wait first. Set to false where it is known that no heartbeat was missed. */
  readonly beginsBlind?: boolean
  /** Maximum time between two runs without a blind period. Default: the default heartbeat. */
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
      // A run counts only if the database answered.
      await clockMs(context.sql)
      const at = now()
      if (at - lookedAt > heartbeatMs) blindUntil = at + 2 * heartbeatMs
      lookedAt = at
      if (at < blindUntil) return { rescued: 0, isBlind: true }
      const sightedSeconds = (at - blindUntil) / 1000
      const ids = await findExpiredLeases(context.sql, claimsPerRun)
      const { moved, failed } = await applyVerdicts(context, ids, task => decide(task, sightedSeconds))
      return { rescued: moved, failed, more: moved > 0 }
    },
  }
}

/** Charges only losses from the time in which this babysitter was running. */
function decide(task: LockedTask, sightedSeconds: number) {
  const { timeoutSeconds } = task.settings
  if (task.state !== 'assigned' && task.state !== 'running') return undefined
  if (task.lapsedForSeconds !== null) return loseLease(task, { charged: task.lapsedForSeconds < sightedSeconds })
  const isLate = timeoutSeconds !== null && task.ranSeconds !== null && task.ranSeconds >= timeoutSeconds
  return isLate && task.state === 'running' ? timeOut(task, Math.random()) : undefined
}

import type { TaskSettings } from './settings.ts'

type Backoff = Pick<TaskSettings, 'delaySeconds' | 'factor' | 'maxSeconds' | 'jitter'>

/**
 * How long to wait after the failure that follows `failures` earlier ones: delay · factor^n, up to the maximum.
 * Jitter takes up to half of it away, so that what failed together does not come back together; `random` is in [0, 1).
 */
export function backoffSeconds(policy: Backoff, failures: number, random: number): number {
  const full = Math.min(policy.delaySeconds * policy.factor ** failures, policy.maxSeconds)
  return policy.jitter ? full * (1 - random / 2) : full
}

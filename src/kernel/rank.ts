/** How soon a lane is served: a higher rank first. The rank rises while work waits in the lane, so nothing starves. */
export interface LaneFacts {
  /** The requested priority, which is the initial rank. */
  readonly priority: number
  /** How long its oldest due task has been due; null if nothing is due. */
  readonly waitedSeconds: number | null
  /** Seconds until the soft and hard deadline of its job; negative if it has passed, null if there is none. */
  readonly softInSeconds: number | null
  readonly hardInSeconds: number | null
}

const secondsPerRank = 60
const mostByAge = 400
const daySeconds = 86_400

export function laneRank(lane: LaneFacts): number {
  if (lane.waitedSeconds === null) return lane.priority
  const aged = lane.priority + Math.min(Math.floor(lane.waitedSeconds / secondsPerRank), mostByAge)
  return Math.max(aged, rankByDeadline(lane) ?? aged)
}

/**
 * Ranks by deadline do not overlap: 1 to 499 before it, 500 to 999 past the soft one, 1000 and above past the hard one.
 */
function rankByDeadline({ softInSeconds, hardInSeconds }: LaneFacts): number | undefined {
  if (hardInSeconds !== null && hardInSeconds <= 0) return 1000 + Math.floor(-hardInSeconds / 60)
  if (softInSeconds !== null && softInSeconds <= 0) return Math.min(500 + Math.floor(-softInSeconds / 60), 999)
  const left = softInSeconds ?? hardInSeconds
  return left === null ? undefined : Math.round(499 - 498 * Math.min(left / daySeconds, 1))
}

/** How soon a lane is served: the higher its rank, the sooner. It ages while work waits in it, so nothing starves. */
export interface LaneFacts {
  /** As it was asked for: where the rank begins. */
  readonly priority: number
  /** How long its oldest due task has been due; null: nothing is. */
  readonly waitedSeconds: number | null
  /** When its job should and when it must be done, counted from now: below 0 it is late. null: nobody said. */
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

/** Bands that do not overlap: near its deadline 1 to 499, late 500 to 999, too late 1000 and above. */
function rankByDeadline({ softInSeconds, hardInSeconds }: LaneFacts): number | undefined {
  if (hardInSeconds !== null && hardInSeconds <= 0) return 1000 + Math.floor(-hardInSeconds / 60)
  if (softInSeconds !== null && softInSeconds <= 0) return Math.min(500 + Math.floor(-softInSeconds / 60), 999)
  const left = softInSeconds ?? hardInSeconds
  return left === null ? undefined : Math.round(499 - 498 * Math.min(left / daySeconds, 1))
}

import { laneRank } from '../kernel/rank.ts'
import { openLanes, setRanks } from '../store/flow/lanes.ts'
import type { Chore } from './chore.ts'

const batch = 1000

/**
 * Raises the rank of lanes whose work waits and resets it when nothing waits, one batch of lanes at a time. Concurrent
 * babysitters write the same ranks; the next run corrects a late write.
 */
export function ageLanes(): Chore {
  let after = 0
  return {
    name: 'age-lanes',
    everySeconds: 5,
    async run({ sql }) {
      const lanes = await openLanes(sql, after, batch)
      after = lanes.length < batch ? 0 : lanes.at(-1)!.id
      const moved = lanes.map(lane => ({ ...lane, was: lane.rank, rank: laneRank(lane) })).filter(isMoved)
      const aged = moved.length === 0 ? 0 : await setRanks(sql, moved)
      return { aged, more: after > 0 && aged > 0 }
    },
  }
}

const isMoved = ({ was, rank }: { was: number; rank: number }) => was !== rank

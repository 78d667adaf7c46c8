import { laneRank } from '../kernel/rank.ts'
import { openLanes, setRanks } from '../store/flow/lanes.ts'
import type { Chore } from './chore.ts'

const batch = 1000

/**
 * Raises the rank of lanes whose work waits, and takes it back when nothing does, a batch of lanes at a time. Two that
 * do it at once write the same; what one writes late, the next look mends.
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

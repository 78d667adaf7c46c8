import type { LaneHint } from '../../store/tasks/claim.ts'

/** Below this, a claim that begins with hints could leave out older tasks for nothing. */
const slowMs = 50
const searchShare = 20
/**
 * Above this number of lanes, none of them has many dead entries, and matching hints with lanes would be the slow part.
 */
const maxLanes = 200

export type ClaimHints = ReturnType<typeof makeClaimHints>

/**
 * Remembers the position in each lane from which this process claims.
 *
 * Claimed rows leave dead entries at the front of the index, which cannot be removed while an old snapshot is open.
 * Without a hint, every claim would scan all of them again. A hint may be wrong: rows that commit late, or that another
 * claim puts back, are below it. So hints are used only if a search from the start is slow and while claims get all that
 * they ask for, and are dropped after twenty times the duration of that search. At most a twentieth of the time is spent
 * searching from the start.
 */
export function makeClaimHints() {
  let hints = new Map<number, LaneHint>()
  let until = 0
  return {
    /** Returns hints for the next claim. Empty: search from the start. */
    current(): readonly LaneHint[] {
      if (performance.now() < until) return [...hints.values()]
      hints = new Map()
      return []
    },
    /** Records the positions of a claim, whether it got all that it asked for, and how long it took. */
    learn(won: readonly LaneHint[], { usedHints, isFull, tookMs }: Claiming): void {
      if (!isFull) until = 0
      else if (!usedHints) until = tookMs < slowMs ? 0 : performance.now() + searchShare * tookMs
      for (const hint of won) {
        const before = hints.get(hint.laneId)
        if (before === undefined || isAfter(hint, before)) hints.set(hint.laneId, hint)
      }
      if (hints.size > maxLanes) until = 0
    },
  }
}

export interface Claiming {
  readonly usedHints: boolean
  readonly isFull: boolean
  readonly tookMs: number
}

/** For claims that must not miss anything: searches from the start and learns nothing. */
export const noClaimHints: ClaimHints = { current: () => [], learn: () => {} }

function isAfter(one: LaneHint, other: LaneHint): boolean {
  return one.runAtUs === other.runAtUs ? one.id > other.id : one.runAtUs > other.runAtUs
}

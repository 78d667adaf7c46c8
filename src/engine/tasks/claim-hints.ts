import type { LaneHint } from '../../store/tasks/claim.ts'

/**
 * Where the living part of each lane begins, as far as this process knows.
 *
 * Claimed rows leave dead entries at the front of the index, and while some snapshot is pinned nobody may remove them;
 * without a hint every claim would walk over all of them again. A hint is only that: what commits late, or is put
 * back by another claim, lies below it. So it is used only where a look from the start is slow, and forgotten after
 * twenty times as long as that look took: at most a twentieth of the time goes into looking.
 */
const slowMs = 50
const lookShare = 20
/** Of so many lanes none has much in front, and what is slow then is to match hints with lanes. */
const mostLanes = 200

export interface ClaimHints {
  /** What to claim with now. Empty: look from the start. */
  current(): readonly LaneHint[]
  /** What a claim has won, and how long it took. */
  learn(won: readonly LaneHint[], usedHints: boolean, tookMs: number): void
}

export function claimHints(now: () => number = () => performance.now()): ClaimHints {
  let known = new Map<number, LaneHint>()
  let until = 0
  return {
    current() {
      if (now() < until) return [...known.values()]
      known = new Map()
      return []
    },
    learn(won, usedHints, tookMs) {
      if (!usedHints) until = tookMs < slowMs ? 0 : now() + lookShare * tookMs
      for (const hint of won) {
        const before = known.get(hint.laneId)
        if (before === undefined || isAfter(hint, before)) known.set(hint.laneId, hint)
      }
      if (known.size > mostLanes) until = 0
    },
  }
}

/** For who must not pass anything over: it looks from the start, and learns nothing. */
export const noHints: ClaimHints = { current: () => [], learn: () => {} }

function isAfter(one: LaneHint, other: LaneHint): boolean {
  return one.runAtUs === other.runAtUs ? one.id > other.id : one.runAtUs > other.runAtUs
}

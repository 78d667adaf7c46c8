/** What this process counts about itself. Other processes on the same database have figures of their own. */
import { bucketCount, bucketOf } from '../../kernel/histogram.ts'

export interface Durations {
  /** How many fell into each bucket of kernel/histogram.ts. */
  readonly counts: number[]
  sumSeconds: number
}

export interface Connections {
  readonly inUse: number
  readonly idle: number
  /** Statements and transactions that wait for one. */
  readonly waiting: number
  readonly most: number
}

export interface Figures {
  /** Claims that lost the race for the first task in line, or were undone and repeated, because another was faster. */
  claimConflicts: number
  leaseRenewals: number
  /** From sending a statement until its answer; also those that failed. */
  readonly statements: Durations
  /** How long the event loop was blocked, each time that it was for longer than its bound. */
  readonly blocked: Durations
  connections(): Connections
}

export function makeFigures(connections: () => Connections, statements: Durations): Figures {
  return { claimConflicts: 0, leaseRenewals: 0, statements, blocked: makeDurations(), connections }
}

export function makeDurations(): Durations {
  return { counts: new Array<number>(bucketCount).fill(0), sumSeconds: 0 }
}

export function observe(durations: Durations, seconds: number): void {
  durations.counts[bucketOf(seconds)]! += 1
  durations.sumSeconds += seconds
}

/** Metrics of this process. Other processes on the same database have their own. */
import { bucketCount, bucketOf } from '../../kernel/histogram.ts'

export interface Durations {
  /** Number of durations in each bucket of kernel/histogram.ts. */
  readonly counts: number[]
  sumSeconds: number
}

export interface Connections {
  readonly inUse: number
  readonly idle: number
  /** Statements and transactions waiting for a connection. */
  readonly waiting: number
  readonly most: number
}

export interface ProcessMetrics {
  /**
   * Claims that lost the race for the first task of a lane, or that were rolled back and retried because of a
   * concurrent one.
   */
  claimConflicts: number
  leaseRenewals: number
  /** Time from sending a statement to its result, including failed statements. */
  readonly statements: Durations
  /** Durations for which the event loop was blocked beyond the limit. */
  readonly blocked: Durations
  connections(): Connections
}

export function makeProcessMetrics(connections: () => Connections, statements: Durations): ProcessMetrics {
  return { claimConflicts: 0, leaseRenewals: 0, statements, blocked: makeDurations(), connections }
}

export function makeDurations(): Durations {
  return { counts: new Array<number>(bucketCount).fill(0), sumSeconds: 0 }
}

export function observe(durations: Durations, seconds: number): void {
  durations.counts[bucketOf(seconds)]! += 1
  durations.sumSeconds += seconds
}

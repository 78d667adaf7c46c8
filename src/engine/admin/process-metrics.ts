/** Metrics of this process. Other processes on the same database have their own. */
import { bucketCount, bucketOf } from '../../kernel/metrics.ts'

export interface Durations {
  /** Number of durations in each bucket of kernel/metrics.ts. */
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

/** Upper bound for finished names that nobody has taken yet. */
const maxEnded = 100

/** Names of the requests and chores in progress. They tell which of them may have blocked the event loop. */
export class Activities {
  readonly #underWay = new Map<symbol, string>()
  #ended: string[] = []

  /** Records the start of an activity. Call the returned function when it ends. */
  begin(name: string): () => void {
    const key = Symbol(name)
    this.#underWay.set(key, name)
    return () => {
      if (!this.#underWay.delete(key)) return
      this.#ended.push(name)
      if (this.#ended.length > maxEnded) this.#ended.shift()
    }
  }

  /** Returns the names of all activities that were in progress at any time since the last call, newest first. */
  take(): string[] {
    const names = [...this.#underWay.values(), ...this.#ended].reverse()
    this.#ended = []
    return [...new Set(names)]
  }
}

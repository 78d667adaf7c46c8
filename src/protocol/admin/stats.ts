/** How often and how fast tasks move, by type and over time. */

export interface PhaseStats {
  readonly count: number
  readonly meanSeconds: number | null
  /** Half took no longer. Read off a histogram, so wrong by a fifth at most; so is the next. */
  readonly p50Seconds: number | null
  readonly p95Seconds: number | null
}

export interface TypeStats {
  readonly type: string
  readonly queued: number
  readonly claimed: number
  readonly started: number
  readonly succeeded: number
  readonly skipped: number
  readonly failed: number
  readonly cancelled: number
  readonly expired: number
  readonly deadLettered: number
  /** Attempts that failed, timed out, or set their task aside. */
  readonly failures: number
  /** Attempts that ended without a result, and whose task went back to the queue. */
  readonly retried: number
  /** Leases that ran out. */
  readonly lost: number
  readonly queuedPerSecond: number
  readonly endedPerSecond: number
  /** From when it could have been claimed until it began. */
  readonly queue: PhaseStats
  /** From its beginning until its attempt ended. */
  readonly run: PhaseStats
}

export interface StatsPoint extends TypeStats {
  /** When this stretch of time begins. */
  readonly at: string
}

export interface QueueDepth {
  readonly queue: string
  readonly due: number
  readonly scheduled: number
  readonly held: number
  readonly oldestSeconds: number | null
}

export interface StatsView {
  readonly from: string
  readonly to: string
  readonly bucketSeconds: number
  /** When the last event was written that is counted here; events are counted by the babysitter, a moment later. */
  readonly lastCountedAt: string | null
  /** Over the whole span. */
  readonly types: readonly TypeStats[]
  /** Stretch by stretch; where nothing happened there is no point. */
  readonly series: readonly StatsPoint[]
  readonly queues: readonly QueueDepth[]
  /** The deepest that each queue was seen, stretch by stretch; where one was empty there is no point. */
  readonly depths: readonly DepthPoint[]
  /** How many types and queues there are besides: those that moved most, and are deepest, are told of. */
  readonly leftOut: LeftOut
}

export interface LeftOut {
  readonly types: number
  readonly queues: number
}

export interface DepthPoint {
  readonly at: string
  readonly queue: string
  readonly due: number
  readonly held: number
}

export interface StatsQuery {
  /** How far back. At most 3 days. Default 3,600. */
  readonly sinceSeconds?: number
  /** Length of a stretch: whole minutes, at most 500 stretches. Default: a sixtieth of the span. */
  readonly bucketSeconds?: number
  readonly type?: string
  /** How many types, and how many queues, are told of at most; fewer where there are many stretches. Default 100. */
  readonly limit?: number
}

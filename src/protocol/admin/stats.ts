/** How often and how fast tasks move, by type and over time. */
import type { Static } from '../../schema/check.ts'
import { at, figure, list, orNull, shape, text, whole } from '../shapes.ts'
import { type QueueView, queueView } from './operate.ts'

const phaseStats = shape({
  count: whole,
  meanSeconds: orNull(figure),
  /** Half took no longer. Read off a histogram, so wrong by a fifth at most; so is the next. */
  p50Seconds: orNull(figure),
  p95Seconds: orNull(figure),
})
export type PhaseStats = Static<typeof phaseStats>

const typeFields = {
  type: text,
  queued: whole,
  claimed: whole,
  started: whole,
  succeeded: whole,
  skipped: whole,
  failed: whole,
  cancelled: whole,
  expired: whole,
  deadLettered: whole,
  /** Attempts that failed, timed out, or set their task aside. */
  failures: whole,
  /** Attempts that ended without a result, and whose task went back to the queue. */
  retried: whole,
  /** Leases that ran out. */
  lost: whole,
  queuedPerSecond: figure,
  endedPerSecond: figure,
  /** From when it could have been claimed until it began. */
  queue: phaseStats,
  /** From its beginning until its attempt ended. */
  run: phaseStats,
}
const typeStats = shape(typeFields)
export type TypeStats = Static<typeof typeStats>

const statsPoint = shape({
  /** When this stretch of time begins. */
  at,
  ...typeFields,
})
export type StatsPoint = Static<typeof statsPoint>

export type QueueDepth = QueueView

const leftOut = shape({
  types: whole,
  queues: whole,
})
export type LeftOut = Static<typeof leftOut>

const depthPoint = shape({
  at,
  queue: text,
  due: whole,
  held: whole,
})
export type DepthPoint = Static<typeof depthPoint>

export const statsView = shape({
  from: at,
  to: at,
  bucketSeconds: whole,
  /** When the last event was written that is counted here; events are counted by the babysitter, a moment later. */
  lastCountedAt: orNull(at),
  /** Over the whole span. */
  types: list(typeStats),
  /** Stretch by stretch; where nothing happened there is no point. */
  series: list(statsPoint),
  queues: list(queueView),
  /** The deepest that each queue was seen, stretch by stretch; where one was empty there is no point. */
  depths: list(depthPoint),
  /** How many types and queues there are besides: those that moved most, and are deepest, are told of. */
  leftOut,
})
export type StatsView = Static<typeof statsView>

export interface StatsQuery {
  /** How far back. At most 3 days. Default 3,600. */
  readonly sinceSeconds?: number
  /** Length of a stretch: whole minutes, at most 500 stretches. Default: a sixtieth of the span. */
  readonly bucketSeconds?: number
  readonly type?: string
  /** How many types, and how many queues, are told of at most; fewer where there are many stretches. Default 100. */
  readonly limit?: number
}

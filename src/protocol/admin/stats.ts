/** How often and how fast tasks move, by type and over time. */
import { statSeconds } from '../../kernel/metrics.ts'
import { type Fields, number, type OptionsOf, type Static } from '../../schema/check.ts'
import { name } from '../../schema/fields.ts'
import { at, figure, list, orNull, shape, text, whole } from '../shapes.ts'
import { type QueueView, queueView } from './admin.ts'

const phaseStats = shape({
  count: whole,
  meanSeconds: orNull(figure),
  /** The median. Percentiles come from a histogram, with an error of at most a fifth. */
  p50Seconds: orNull(figure),
  p95Seconds: orNull(figure),
})
/** Durations of one phase of tasks. */
export interface PhaseStats extends Static<typeof phaseStats> {}

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
  /** Attempts that failed, timed out or moved their task to the dead-letter queue. */
  failures: whole,
  /** Attempts that ended without a result, with the task back in the queue. */
  retried: whole,
  /** Expired leases. */
  lost: whole,
  queuedPerSecond: figure,
  endedPerSecond: figure,
  /** From the time when the task could be claimed until its start. */
  queue: phaseStats,
  /** From the start to the end of the attempt. */
  run: phaseStats,
}
const typeStats = shape(typeFields)
/** Counts, rates and durations of the tasks of a type. */
export interface TypeStats extends Static<typeof typeStats> {}

const statsPoint = shape({
  /** Start of this bucket. */
  at,
  ...typeFields,
})
/** Statistics of a type in one bucket of time. */
export interface StatsPoint extends Static<typeof statsPoint> {}

/** The current depth of a queue. */
export type QueueDepth = QueueView

const leftOut = shape({
  types: whole,
  queues: whole,
})
/** Numbers of types and queues that are not listed. */
export interface LeftOut extends Static<typeof leftOut> {}

const depthPoint = shape({
  at,
  queue: text,
  due: whole,
  held: whole,
})
/** Maximum depth of a queue in one bucket of time. */
export interface DepthPoint extends Static<typeof depthPoint> {}

export const statsView = shape({
  from: at,
  to: at,
  bucketSeconds: whole,
  /** Time of the last event that is included. The babysitter counts events a moment after they are written. */
  lastCountedAt: orNull(at),
  /** Totals of the whole period. */
  types: list(typeStats),
  /** One point per bucket and type. Buckets without events have none. */
  series: list(statsPoint),
  queues: list(queueView),
  /** Maximum depth of each queue per bucket. Buckets in which it was empty have no point. */
  depths: list(depthPoint),
  /** Number of types and queues that are not listed. The busiest types and the deepest queues are. */
  leftOut,
})
/** How often and how fast tasks move, by type and over time. */
export interface StatsView extends Static<typeof statsView> {}

export const statsQueryFields = {
  /** Length of the period until now. At most 3 days. Default 3,600. */
  sinceSeconds: number({ from: 60, to: statSeconds }),
  /** Bucket size: whole minutes, at most 500 buckets. Default: a sixtieth of the period. */
  bucketSeconds: number({ from: 60, to: statSeconds, whole: true }),
  type: name,
  /** Maximum number of types and of queues. Lower if there are many buckets. Default 100. */
  limit: number({ from: 1, to: 1000, whole: true }),
} satisfies Fields
/** Query for statistics. */
export interface StatsQuery extends OptionsOf<typeof statsQueryFields> {}

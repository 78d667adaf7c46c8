/**
 * How an ended stage or job is named, from its children alone. Total: every mixture has a rule.
 * Intents (pause, hold, cancel, deadline) are not seen here; they decide before this is asked.
 */
import type { OnFailure } from './plan.ts'
import type { StageState } from './stage.ts'

export interface TaskCounts {
  /** Bad: failed, cancelled, expired, dead_lettered. */
  readonly bad: number
  /** Good: succeeded or skipped. */
  readonly good: number
  /** Of the good ones, those whose handler said that it did only some of it. */
  readonly partial: number
}

export interface Tolerance {
  readonly count?: number
  readonly percent?: number
}

/** How many bad tasks a stage of `total` bears. */
export function tolerated(tolerate: Tolerance, total: number): number {
  return Math.max(tolerate.count ?? 0, Math.floor((total * (tolerate.percent ?? 0)) / 100))
}

/** A stage whose tasks have all ended. */
export function rollUpStage(tasks: TaskCounts, tolerate: Tolerance = {}): 'succeeded' | 'partial' | 'failed' {
  if (tasks.bad === 0) return tasks.partial > 0 ? 'partial' : 'succeeded'
  const bearable = tasks.bad <= tolerated(tolerate, tasks.bad + tasks.good)
  return bearable && tasks.good > 0 ? 'partial' : 'failed'
}

export interface StageEnd {
  readonly state: Extract<StageState, 'succeeded' | 'skipped' | 'partial' | 'failed' | 'cancelled'>
  readonly onFailure: OnFailure
}

/** A job whose stages have all ended, and which nobody stopped. Skipped stages do not count. */
export function rollUpJob(stages: readonly StageEnd[]): 'succeeded' | 'partial' | 'failed' {
  const bad = stages.filter(({ state }) => state === 'failed' || state === 'cancelled')
  if (bad.some(({ onFailure }) => onFailure !== 'continue')) return 'failed'
  const partial = stages.some(({ state }) => state === 'partial')
  const good = stages.some(({ state }) => state === 'succeeded')
  if (bad.length === 0) return partial ? 'partial' : 'succeeded'
  return good || partial ? 'partial' : 'failed'
}

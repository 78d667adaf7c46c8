/**
 * Names the final state of a stage or job from its children alone. Total: every combination has a rule. Intents (pause,
 * hold, cancel, deadline) take effect before this is called, and are not considered here.
 */
import type { OnFailure } from './plan.ts'
import type { StageState } from './stage.ts'

export interface TaskCounts {
  /** Bad: failed, cancelled, expired, dead_lettered. */
  readonly bad: number
  /** Good: succeeded or skipped. */
  readonly good: number
  /** The good tasks whose handlers reported a partial result. */
  readonly partial: number
}

export interface Tolerance {
  readonly count?: number
  readonly percent?: number
}

/** The number of bad tasks that a stage of `total` tasks tolerates. */
export function tolerated(tolerate: Tolerance, total: number): number {
  return Math.max(tolerate.count ?? 0, Math.floor((total * (tolerate.percent ?? 0)) / 100))
}

/** Names the end of a stage whose tasks have all ended. */
export function rollUpStage(tasks: TaskCounts, tolerate: Tolerance = {}): 'succeeded' | 'partial' | 'failed' {
  if (tasks.bad === 0) return tasks.partial > 0 ? 'partial' : 'succeeded'
  const bearable = tasks.bad <= tolerated(tolerate, tasks.bad + tasks.good)
  return bearable && tasks.good > 0 ? 'partial' : 'failed'
}

export interface StageEnd {
  readonly state: Extract<StageState, 'succeeded' | 'skipped' | 'partial' | 'failed' | 'cancelled'>
  readonly onFailure: OnFailure
}

/** Names the end of a job whose stages have all ended and that nobody stopped. Skipped stages do not count. */
export function rollUpJob(stages: readonly StageEnd[]): 'succeeded' | 'partial' | 'failed' {
  const bad = stages.filter(({ state }) => state === 'failed' || state === 'cancelled')
  if (bad.some(({ onFailure }) => onFailure !== 'continue')) return 'failed'
  const partial = stages.some(({ state }) => state === 'partial')
  const good = stages.some(({ state }) => state === 'succeeded')
  if (bad.length === 0) return partial ? 'partial' : 'succeeded'
  return good || partial ? 'partial' : 'failed'
}

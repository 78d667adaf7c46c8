/** Decides whether the needs of a stage are met. Pure and total: every combination of states has an answer. */
import { isFinal } from './lifecycle.ts'
import type { Join, OnFailure } from './plan.ts'
import { type StageState, stageLifecycle } from './stage.ts'

export interface Need {
  readonly state: StageState
  readonly onFailure: OnFailure
  /** Every task of the stage was skipped, for whatever reason. */
  readonly undone?: boolean
}

export interface Dependent {
  readonly join: Join
  /** Only explicit needs pass a skip on. The order of a list does not. */
  readonly needsWritten: boolean
}

export type NeedsVerdict = 'wait' | 'met' | 'skip'

/** Ended well enough for the stages that need it. */
export function isMet({ state, onFailure }: Need): boolean {
  const { outcome } = stageLifecycle.states[state]
  return outcome !== undefined && (outcome !== 'bad' || onFailure === 'continue')
}

export function needsOf({ join, needsWritten }: Dependent, needs: readonly Need[]): NeedsVerdict {
  const ended = needs.filter(({ state }) => isFinal(stageLifecycle, state))
  const allEnded = ended.length === needs.length
  if (join === 'done') return allEnded ? 'met' : 'wait'
  const isSkipped = ({ state, undone }: Need) => state === 'skipped' || (join === 'taken' && undone === true)
  const allSkipped = needs.length > 0 && needs.every(isSkipped)
  if (needsWritten && allSkipped) return 'skip'
  if (join === 'any') {
    if (needs.some(need => isMet(need) && need.state !== 'skipped')) return 'met'
    return allEnded ? 'skip' : 'wait'
  }
  return needs.every(isMet) ? 'met' : 'wait'
}

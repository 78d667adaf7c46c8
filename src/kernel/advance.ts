/**
 * Decides what a job does next. Pure: takes the current job and its stages, and returns one act. The caller carries it
 * out and asks again until there is none (next-acts.ts). Every state of a stage or job is decided here: after a task
 * ends, after a request, and when the babysitter repairs a job.
 *
 * An *intent* (`endsAs`) is recorded before it is carried out: tasks are cancelled first, and a stage ends when its
 * last task has ended. So no task is ever open under an ended stage, and no stage under an ended job.
 *
 * How a stage opens: when its needs are met (`needsOf`) and its condition allows it, `createdAct` moves it from
 * `created` to `pending`. The act `release` then queues its blocked tasks, in batches. Its lane opens with the same
 * write (`isLaneOpen`), so its tasks can be claimed once the transaction commits.
 */
import type { JobState } from './job.ts'
import { isFinal } from './lifecycle.ts'
import type { OnFailure, Openness, StagePlan } from './plan.ts'
import { rollUpJob, rollUpStage, type StageEnd, type TaskCounts, tolerated } from './rollup.ts'
import { type StageState, stageLifecycle } from './stage.ts'

export interface StageFacts extends TaskCounts {
  readonly id: string
  readonly name: string
  readonly kind: 'work' | 'undo'
  readonly state: StageState
  readonly plan: Omit<StagePlan, 'payloads' | 'taskId'>
  readonly open: Openness
  /** Number of tasks, including those that its list has yet to produce. */
  readonly total: number
  /** Tasks that ended well without being executed. */
  readonly skipped?: number
  readonly blocked: number
  /** Elements of its list that have not become tasks yet. */
  readonly unfanned: number
  readonly badBefore: number
  /** A task of the stage has started in this round. */
  readonly begun: boolean
  /** The round of the job in which the stage ended. */
  readonly endedIn: number | null
  readonly endsAs: 'failed' | 'cancelled' | 'skipped' | null
  readonly endsCause: string | null
  readonly held: boolean
  readonly approvals: number
  /** The result of evaluating its condition and its list; null until they have been evaluated. */
  readonly opening: 'yes' | 'no' | 'error' | null
  /** A change to its tasks is in progress and has not reached all of them. */
  readonly busy: boolean
  /** Its open tasks have been cancelled, and the workers of held tasks have been told to stop. */
  readonly calledOff: boolean
  /** Tasks whose work can be undone. */
  readonly undoable: number
  /** Progress of listing its inputs; null if it has none. */
  readonly listing?: 'wanted' | 'under way' | 'done' | null
  /** Some output files have not reached their final location yet. */
  readonly unstored?: boolean
  /** The stage must end at once. */
  readonly endsHard?: boolean
  /** An output file was lost before it reached its final location. */
  readonly outputLost?: boolean
}

export interface JobFacts {
  readonly state: JobState
  readonly round: number
  readonly open: Openness
  readonly begun: boolean
  readonly endsAs: 'failed' | 'cancelled' | 'expired' | null
  readonly endsCause: string | null
  readonly compensated: boolean
}

type IntendedEnd = NonNullable<StageFacts['endsAs']>

export type Act =
  | { readonly act: 'move stage'; readonly stage: StageFacts; readonly to: StageState; readonly cause: string }
  /** Record how the stage will end. */
  | { readonly act: 'intend stage'; readonly stage: StageFacts; readonly endsAs: IntendedEnd; readonly cause: string }
  /**
   * Evaluate its condition and its list, list its inputs, create tasks for the next elements of its list, make its
   * blocked tasks claimable, or skip or cancel its tasks.
   */
  | {
      readonly act: 'evaluate' | 'list' | 'fan out' | 'release' | 'pass over' | 'call off'
      readonly stage: StageFacts
    }
  | { readonly act: 'intend job'; readonly endsAs: NonNullable<JobFacts['endsAs']>; readonly cause: string }
  | { readonly act: 'move job'; readonly to: JobState; readonly cause: string }
  /** Create the stages that undo the work that succeeded. */
  | { readonly act: 'plan undoing' }

type ByName = ReadonlyMap<string, StageFacts>

/** The next act of a stage, or undefined if the stage is waiting. `byName` holds the stages of kind `work`. */
export function stageAct(
  job: JobFacts,
  stage: StageFacts,
  stages: readonly StageFacts[],
  byName: ByName,
): Act | undefined {
  if (hasEnded(stage)) return undefined
  if (stage.kind === 'work' && job.endsAs !== null && stage.endsAs === null) {
    return { act: 'intend stage', stage, endsAs: 'cancelled', cause: job.endsCause ?? `job_${job.endsAs}` }
  }
  if (stage.busy) return undefined
  if (stage.endsAs !== null) return endingAct(stage, stage.endsAs)
  switch (stage.state) {
    case 'created':
      return createdAct(job, stage, stages, byName)
    case 'waiting':
      if (stage.held || !isApproved(stage)) return undefined
      return { act: 'move stage', stage, to: stage.begun ? 'running' : 'pending', cause: 'approved' }
    case 'pending':
    case 'running':
      return actOfOpenStage(stage)
    default:
      return undefined
  }
}

/** Whether the gate has all the approvals that it requires. */
export const isApproved = ({ plan, approvals }: StageFacts) => plan.gate === null || approvals >= plan.gate.approvers
const hasEnded = ({ state }: Pick<StageFacts, 'state'>) => isFinal(stageLifecycle, state)
const leftOf = ({ total, good, bad }: StageFacts) => total - good - bad

/** The end of the stage is decided: its tasks are cancelled or skipped, and the stage ends with the last of them. */
function endingAct(stage: StageFacts, endsAs: IntendedEnd): Act | undefined {
  const cause = stage.endsCause ?? endsAs
  // Outputs count even if the stage ends badly, so it waits until they are stored, unless it must end at once.
  const isStored = !stage.unstored || stage.endsHard === true
  if (leftOf(stage) === 0 && isStored) return { act: 'move stage', stage, to: endsAs, cause }
  if (endsAs === 'skipped') return { act: 'pass over', stage }
  if (!stage.calledOff) return { act: 'call off', stage }
  const isOpen = stage.state === 'pending' || stage.state === 'running' || stage.state === 'waiting'
  return isOpen ? { act: 'move stage', stage, to: 'stopping', cause } : undefined
}

function createdAct(job: JobFacts, stage: StageFacts, stages: readonly StageFacts[], byName: ByName): Act | undefined {
  if (stage.kind === 'undo') return undoAct(job, stage, stages)
  if (job.state === 'created') return undefined
  const verdict = needsOf(
    stage.plan,
    stage.plan.needs.map(name => needOf(byName.get(name)!)),
  )
  if (verdict === 'wait') return undefined
  if (verdict === 'skip') return { act: 'intend stage', stage, endsAs: 'skipped', cause: 'needs_skipped' }
  const { when, forEach, gives } = stage.plan
  const isConditional = when !== null || forEach !== null || gives !== undefined
  if (isConditional && stage.opening === null) return { act: 'evaluate', stage }
  if (stage.opening === 'no') return { act: 'intend stage', stage, endsAs: 'skipped', cause: 'condition_false' }
  if (stage.opening === 'error') return { act: 'intend stage', stage, endsAs: 'failed', cause: 'condition_error' }
  if (stage.held || !isApproved(stage)) return { act: 'move stage', stage, to: 'waiting', cause: 'gate' }
  return { act: 'move stage', stage, to: 'pending', cause: 'needs_met' }
}

export interface Need {
  readonly state: StageState
  readonly onFailure: OnFailure
  /** Every task of the stage was skipped, for whatever reason. */
  readonly undone?: boolean
}

function needOf(stage: StageFacts): Need {
  const { state, plan, total, skipped } = stage
  return { state, onFailure: plan.onFailure, undone: hasEnded(stage) && total > 0 && skipped === total }
}

/** Ended well enough for the stages that need it. */
export function isMet({ state, onFailure }: Need): boolean {
  const { outcome } = stageLifecycle.states[state]
  return outcome !== undefined && (outcome !== 'bad' || onFailure === 'continue')
}

export function needsOf(
  { join, needsWritten }: Pick<StagePlan, 'join' | 'needsWritten'>,
  needs: readonly Need[],
): 'wait' | 'met' | 'skip' {
  const allEnded = needs.every(hasEnded)
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

/** Compensation runs in reverse order: each stage starts when the previous one has ended, whatever its outcome. */
function undoAct(job: JobFacts, stage: StageFacts, stages: readonly StageFacts[]): Act | undefined {
  if (job.state !== 'compensating') return undefined
  const first = stages.find(each => each.kind === 'undo' && !hasEnded(each))
  return first === stage ? { act: 'move stage', stage, to: 'pending', cause: 'compensation' } : undefined
}

function actOfOpenStage(stage: StageFacts): Act | undefined {
  const { plan, bad, badBefore, total, state } = stage
  if (stage.held) return { act: 'move stage', stage, to: 'waiting', cause: 'held' }
  if (state === 'pending' && stage.begun) return { act: 'move stage', stage, to: 'running', cause: 'task_started' }
  if (stage.blocked > 0) return { act: 'release', stage }
  if (stage.unfanned > 0) return { act: 'fan out', stage }
  if (stage.listing === 'wanted') return { act: 'list', stage }
  if (leftOf(stage) > 0 || stage.listing === 'under way') {
    // A percentage of the tasks is unknown until all tasks are known.
    const isKnown = stage.listing !== 'under way' || plan.tolerate.percent === undefined
    const isTooBad = isKnown && plan.failFast && bad - badBefore > tolerated(plan.tolerate, total)
    return isTooBad ? { act: 'intend stage', stage, endsAs: 'failed', cause: 'too_many_bad' } : undefined
  }
  if (stage.outputLost) return { act: 'intend stage', stage, endsAs: 'failed', cause: 'output_lost' }
  if (stage.unstored || !mayEnd(stage.open, total)) return undefined
  return { act: 'move stage', stage, to: rollUpStage(stage, plan.tolerate), cause: 'tasks_ended' }
}

const mayEnd = (open: Openness, children: number) => open === 'sealed' || (open === 'untilDone' && children > 0)

/**
 * A lane is open while its stage is open and its job is neither paused nor stopping. The lanes of undo stages are open
 * while the job compensates. Once a stage or job has been decided to end, no more of its tasks are handed out.
 */
export function isLaneOpen(
  job: JobFacts & { readonly visible: boolean },
  { state, kind, endsAs }: StageFacts,
): boolean {
  const isJobOpen = (job.state === 'pending' || job.state === 'running') && job.endsAs === null
  const runs = kind === 'undo' ? job.state === 'compensating' : isJobOpen
  return runs && job.visible && endsAs === null && (state === 'pending' || state === 'running')
}

/** The next act of the job itself, once no stage has anything to do. */
export function jobAct(job: JobFacts, stages: readonly StageFacts[], byName: ByName): Act | undefined {
  const work = stages.filter(({ kind }) => kind === 'work')
  if (job.endsAs !== null) return endJobAct(job, work, stages, job.endsAs)
  if (job.state === 'created') return undefined
  const culprit = work.find(stage => isCulprit(job, stage))
  if (culprit !== undefined) {
    return { act: 'intend job', endsAs: 'failed', cause: `stage ${culprit.name} ${culprit.endsAs ?? culprit.state}` }
  }
  const hopeless = work.find(stage => isHopeless(stage, byName))
  if (hopeless !== undefined) {
    return { act: 'intend stage', stage: hopeless, endsAs: 'cancelled', cause: 'needs_failed' }
  }
  if (job.state === 'pending' && job.begun) return { act: 'move job', to: 'running', cause: 'task_started' }
  const isDone = work.every(hasEnded) && mayEnd(job.open, work.length)
  if (!isDone || job.state === 'paused') return undefined
  const ends = work
    .filter(stage => !isMereValue(stage))
    .map(({ state, plan }) => ({ state: state as StageEnd['state'], onFailure: plan.onFailure }))
  const end = rollUpJob(ends)
  if (end === 'failed') return { act: 'intend job', endsAs: 'failed', cause: 'all stages are bad' }
  return { act: 'move job', to: end, cause: 'stages_ended' }
}

/** A stage that only computed a value does not count as success when all other work failed. */
const isMereValue = ({ state, plan }: StageFacts) => plan.gives !== undefined && state === 'succeeded'

/** A stage that went bad in an earlier round counts at the roll-up, but does not stop the current round. */
function isCulprit({ round }: JobFacts, stage: StageFacts): boolean {
  const { state, plan, endedIn } = stage
  const isBad = stageLifecycle.states[state].outcome === 'bad' && endedIn === round
  return (isBad && plan.onFailure !== 'continue') || isCulpritAtOnce(stage)
}

/** The stage is going to end badly, and its job does not wait for it to finish. */
function isCulpritAtOnce(stage: StageFacts): boolean {
  const willBeBad = !hasEnded(stage) && (stage.endsAs === 'failed' || stage.endsAs === 'cancelled')
  return willBeBad && stage.plan.onFailure === 'failAtOnce'
}

/** The stage was revived, but a stage that it needs went bad in an earlier round and was not. It can never open. */
function isHopeless({ state, endsAs, busy, plan }: StageFacts, byName: ByName): boolean {
  const wantsAll = plan.join === 'all' || plan.join === 'taken'
  if (state !== 'created' || endsAs !== null || busy || !wantsAll) return false
  return plan.needs.some(name => {
    const need = byName.get(name)!
    return hasEnded(need) && !isMet(needOf(need))
  })
}

/** The end of the job is decided: first its stages end, then their work is undone, then the job ends. */
function endJobAct(
  job: JobFacts,
  work: readonly StageFacts[],
  stages: readonly StageFacts[],
  endsAs: NonNullable<JobFacts['endsAs']>,
): Act | undefined {
  const cause = job.endsCause ?? endsAs
  const isBefore = job.state !== 'stopping' && job.state !== 'compensating'
  if (!work.every(hasEnded)) {
    return isBefore ? { act: 'move job', to: 'stopping', cause } : undefined
  }
  const undo = stages.filter(({ kind }) => kind === 'undo')
  const isToUndo = !job.compensated && work.some(({ plan, undoable }) => plan.compensate !== null && undoable > 0)
  if (isToUndo) {
    if (isBefore) return { act: 'move job', to: 'stopping', cause }
    if (job.state === 'stopping') {
      return undo.length === 0 ? { act: 'plan undoing' } : { act: 'move job', to: 'compensating', cause }
    }
    if (!undo.every(hasEnded)) return undefined
  }
  return { act: 'move job', to: endsAs, cause }
}

/**
 * What a job does next. Pure: the job and its stages as they are, one act out; whoever asks does it, and asks again
 * until there is none (agenda.ts). States of stages and jobs come from here alone, when a task ends, when somebody asks for
 * something, and when the babysitter repairs.
 *
 * An *intent* (`endsAs`) is written down before it is carried out: tasks are called off first, and a stage ends when
 * the last of them has. So no child is ever open under an ended parent.
 */
import type { JobState } from './job.ts'
import { isFinal } from './lifecycle.ts'
import { isMet, needsOf } from './needs.ts'
import type { Openness, StagePlan } from './plan.ts'
import { rollUpJob, rollUpStage, type StageEnd, type TaskCounts, tolerated } from './rollup.ts'
import { type StageState, stageLifecycle } from './stage.ts'

export interface StageFacts extends TaskCounts {
  readonly id: string
  readonly name: string
  readonly kind: 'work' | 'undo'
  readonly state: StageState
  readonly plan: Omit<StagePlan, 'payloads' | 'taskId'>
  readonly open: Openness
  /** Tasks that it has, or will have when its list has become tasks. */
  readonly total: number
  /** Of those that ended well, the ones that were not done. */
  readonly skipped?: number
  readonly blocked: number
  /** Elements of its list that are not tasks yet. */
  readonly unfanned: number
  readonly badBefore: number
  /** A task of it has started in this round. */
  readonly begun: boolean
  /** The round of the job in which it ended. */
  readonly endedIn: number | null
  readonly endsAs: 'failed' | 'cancelled' | 'skipped' | null
  readonly endsCause: string | null
  readonly held: boolean
  readonly approvals: number
  /** Its condition and its list, once they have been looked at: what came out. */
  readonly opening: 'yes' | 'no' | 'error' | null
  /** Something is being done to its tasks, and not all have been reached. */
  readonly busy: boolean
  /** Its open tasks have been called off, and the held ones told. */
  readonly calledOff: boolean
  /** Tasks whose doing can be undone. */
  readonly undoable: number
  /** Its inputs: to be found, being found, or all found; null: it has none. */
  readonly listing?: 'wanted' | 'under way' | 'done' | null
  /** Files that its tasks have put out are not where they belong yet. */
  readonly unstored?: boolean
  /** It is to end at once. */
  readonly endsHard?: boolean
  /** A file that a task has put out was lost before it came there. */
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

export type Act =
  | { readonly act: 'move stage'; readonly stage: StageFacts; readonly to: StageState; readonly cause: string }
  /** Write down how the stage will end. */
  | {
      readonly act: 'intend stage'
      readonly stage: StageFacts
      readonly endsAs: NonNullable<StageFacts['endsAs']>
      readonly cause: string
    }
  /** Look at its condition and its list. */
  | { readonly act: 'evaluate'; readonly stage: StageFacts }
  /** Let its blocked tasks be claimed. */
  | { readonly act: 'release'; readonly stage: StageFacts }
  /** Have its inputs found. */
  | { readonly act: 'list'; readonly stage: StageFacts }
  /** Make tasks of the next elements of its list. */
  | { readonly act: 'fan out'; readonly stage: StageFacts }
  /** Pass its blocked tasks over. */
  | { readonly act: 'pass over'; readonly stage: StageFacts }
  | { readonly act: 'call off'; readonly stage: StageFacts }
  | { readonly act: 'intend job'; readonly endsAs: NonNullable<JobFacts['endsAs']>; readonly cause: string }
  | { readonly act: 'move job'; readonly to: JobState; readonly cause: string }
  /** Make the stages that undo what had succeeded. */
  | { readonly act: 'plan undoing' }

/** Which stage of a job needs which, by their names. */
export interface NeedsOfJob {
  /** The stages that need this one. */
  neededBy(name: string): readonly string[]
  /** One stage without whose end this one does not open, if one is known. */
  waitsFor(name: string): string | undefined
}

/**
 * Whether these stages are enough to tell the next act of their job. The job was at rest, and since then only the
 * counts of these have changed. So of the others, only one that needs a stage that has ended can have something to do;
 * and the job itself, when none of these is open, when one went bad, or when how it ends is decided.
 */
export function canDecide(job: JobFacts, stages: readonly StageFacts[], { neededBy, waitsFor }: NeedsOfJob): boolean {
  if (job.endsAs !== null || (job.state !== 'pending' && job.state !== 'running')) return false
  const byName = new Map(stages.map(stage => [stage.name, stage]))
  const knows = (others: readonly string[]) => others.every(name => byName.has(name))
  const isWaiting = (name: string) => {
    const need = byName.get(waitsFor(name) ?? '')
    return need !== undefined && !isFinal(stageLifecycle, need.state)
  }
  const isSettled = ({ kind, name, state, plan }: StageFacts) => {
    if (kind === 'undo' || stageLifecycle.states[state].outcome === 'bad') return false
    if (isFinal(stageLifecycle, state)) return neededBy(name).every(user => byName.has(user) || isWaiting(user))
    return state !== 'created' || knows(plan.needs)
  }
  return stages.every(isSettled) && stages.some(({ state }) => !isFinal(stageLifecycle, state))
}

type ByName = ReadonlyMap<string, StageFacts>

/** The next act of a stage; undefined: it waits for something to happen. `byName` has the stages that do work. */
export function stageAct(
  job: JobFacts,
  stage: StageFacts,
  stages: readonly StageFacts[],
  byName: ByName,
): Act | undefined {
  if (isFinal(stageLifecycle, stage.state)) return undefined
  if (stage.kind === 'work' && job.endsAs !== null && stage.endsAs === null) {
    return { act: 'intend stage', stage, endsAs: 'cancelled', cause: job.endsCause ?? `job_${job.endsAs}` }
  }
  if (stage.busy) return undefined
  if (stage.endsAs !== null) return endingAct(stage, stage.endsAs)
  switch (stage.state) {
    case 'created':
      return createdAct(job, stage, stages, byName)
    case 'waiting': {
      if (stage.held || !isApproved(stage)) return undefined
      return { act: 'move stage', stage, to: stage.begun ? 'running' : 'pending', cause: 'approved' }
    }
    case 'pending':
    case 'running':
      return openAct(stage)
    default:
      return undefined
  }
}

/** As many as its gate asks for have approved. */
export const isApproved = ({ plan, approvals }: StageFacts) => plan.gate === null || approvals >= plan.gate.approvers
const leftOf = ({ total, good, bad }: StageFacts) => total - good - bad

/** Its end is decided: its tasks are called off or passed over, and when the last has ended, so has the stage. */
function endingAct(stage: StageFacts, endsAs: NonNullable<StageFacts['endsAs']>): Act | undefined {
  const cause = stage.endsCause ?? endsAs
  // What it has done counts, also of one that ends badly; only who is in a hurry does not wait for it.
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
  const needs = stage.plan.needs.map(name => {
    const need = byName.get(name)!
    return { state: need.state, onFailure: need.plan.onFailure, undone: isUndone(need) }
  })
  const verdict = needsOf(stage.plan, needs)
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

/** It has ended, and none of its tasks was really done. */
const isUndone = ({ state, total, skipped }: StageFacts) =>
  isFinal(stageLifecycle, state) && total > 0 && skipped === total

/** Undoing goes backwards: each begins when the one before it has ended, however it ended. */
function undoAct(job: JobFacts, stage: StageFacts, stages: readonly StageFacts[]): Act | undefined {
  if (job.state !== 'compensating') return undefined
  const first = stages.find(({ kind, state }) => kind === 'undo' && !isFinal(stageLifecycle, state))
  return first === stage ? { act: 'move stage', stage, to: 'pending', cause: 'compensation' } : undefined
}

function openAct(stage: StageFacts): Act | undefined {
  const { plan, bad, badBefore, total, state } = stage
  if (stage.held) return { act: 'move stage', stage, to: 'waiting', cause: 'held' }
  if (state === 'pending' && stage.begun) return { act: 'move stage', stage, to: 'running', cause: 'task_started' }
  if (stage.blocked > 0) return { act: 'release', stage }
  if (stage.unfanned > 0) return { act: 'fan out', stage }
  if (stage.listing === 'wanted') return { act: 'list', stage }
  if (leftOf(stage) > 0 || stage.listing === 'under way') {
    // A share of the tasks is not known before all are.
    const isKnown = stage.listing !== 'under way' || plan.tolerate.percent === undefined
    const isTooBad = isKnown && plan.failFast && bad - badBefore > tolerated(plan.tolerate, total)
    return isTooBad ? { act: 'intend stage', stage, endsAs: 'failed', cause: 'too_many_bad' } : undefined
  }
  if (stage.outputLost) return { act: 'intend stage', stage, endsAs: 'failed', cause: 'output_lost' }
  if (stage.unstored || !mayEnd(stage.open, total)) return undefined
  return { act: 'move stage', stage, to: rollUpStage(stage, plan.tolerate), cause: 'tasks_ended' }
}

const mayEnd = (open: Openness, children: number) => open === 'sealed' || (open === 'untilDone' && children > 0)

/** The next act of the job itself, if none of its stages has anything to do. */
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
  const isDone = work.every(({ state }) => isFinal(stageLifecycle, state)) && mayEnd(job.open, work.length)
  if (!isDone || job.state === 'paused') return undefined
  const ends = work
    .filter(stage => !isMereValue(stage))
    .map(({ state, plan }) => ({ state: state as StageEnd['state'], onFailure: plan.onFailure }))
  const end = rollUpJob(ends)
  if (end === 'failed') return { act: 'intend job', endsAs: 'failed', cause: 'all stages are bad' }
  return { act: 'move job', to: end, cause: 'stages_ended' }
}

/** It only computed something: where all work failed, that is no good that was done. */
const isMereValue = ({ state, plan }: StageFacts) => plan.gives !== undefined && state === 'succeeded'

/** What went bad in an earlier round counts when all have ended, but does not stop this one. */
function isCulprit({ round }: JobFacts, stage: StageFacts): boolean {
  const { state, plan, endedIn } = stage
  const isBad = stageLifecycle.states[state].outcome === 'bad' && endedIn === round
  return (isBad && plan.onFailure !== 'continue') || isCulpritAtOnce(stage)
}

/** It is decided that it ends badly, and its job does not wait until it has. */
function isCulpritAtOnce({ state, plan, endsAs }: StageFacts): boolean {
  const willBeBad = !isFinal(stageLifecycle, state) && (endsAs === 'failed' || endsAs === 'cancelled')
  return willBeBad && plan.onFailure === 'failAtOnce'
}

/** It was brought back, but what it needs went bad in an earlier round and was not: it can never open. */
function isHopeless({ state, endsAs, busy, plan }: StageFacts, byName: ByName): boolean {
  const wantsAll = plan.join === 'all' || plan.join === 'taken'
  if (state !== 'created' || endsAs !== null || busy || !wantsAll) return false
  return plan.needs.some(name => {
    const need = byName.get(name)!
    return isFinal(stageLifecycle, need.state) && !isMet({ state: need.state, onFailure: need.plan.onFailure })
  })
}

/** Its end is decided: first its stages end, then what they did is undone, then the job has ended. */
function endJobAct(
  job: JobFacts,
  work: readonly StageFacts[],
  stages: readonly StageFacts[],
  endsAs: NonNullable<JobFacts['endsAs']>,
): Act | undefined {
  const cause = job.endsCause ?? endsAs
  const isBefore = job.state !== 'stopping' && job.state !== 'compensating'
  if (work.some(({ state }) => !isFinal(stageLifecycle, state))) {
    return isBefore ? { act: 'move job', to: 'stopping', cause } : undefined
  }
  const undo = stages.filter(({ kind }) => kind === 'undo')
  const isToUndo = !job.compensated && work.some(({ plan, undoable }) => plan.compensate !== null && undoable > 0)
  if (isToUndo) {
    if (isBefore) return { act: 'move job', to: 'stopping', cause }
    if (job.state === 'stopping') {
      return undo.length === 0 ? { act: 'plan undoing' } : { act: 'move job', to: 'compensating', cause }
    }
    if (undo.some(({ state }) => !isFinal(stageLifecycle, state))) return undefined
  }
  return { act: 'move job', to: endsAs, cause }
}

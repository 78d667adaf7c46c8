/**
 * Evaluates the conditions of stages, and limits their computation. Cheap conditions are evaluated in the transaction
 * that opens their stage. A condition that needs more steps than are left there is postponed to a turn of its job. Each
 * turn is a transaction of its own. Turns run one after another with pauses in between, so costly conditions take only a
 * part of each second, and every job gets its share.
 *
 * A postponed condition is stored as pending work of its job. If this process ends before the turn comes, the
 * babysitter of another process continues.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { StageFacts } from '../../kernel/advance.ts'
import {
  evaluateForEach,
  evaluateGives,
  evaluateWhen,
  mostSteps,
  type Scope,
  stagesNamedIn,
} from '../../spec/conditions.ts'
import { Meter, OutOfSteps } from '../../spec/meter.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { readOutputs } from '../../store/jobs/errands.ts'
import { readJobInput, type StageRow } from '../../store/jobs/jobs.ts'
import type { StagePatch } from './job-changes.ts'
import type { LockedJob } from './locked-job.ts'

/** Maximum number of steps for all conditions of a job in one round. */
export const stepsPerJob = 30_000_000
/** Maximum size of all outputs that one stage's conditions read. They are in memory at the same time. */
const maxOutputBytes = 16 * 2 ** 20
/** Reading and parsing this many bytes takes about as long as one step. */
const bytesPerStep = 16
/** A value is stored with its stage, and every view of the job shows it. So a job has at most about 7 MB of them. */
export const stepsPerCharacter = 4
/** Conditions with fewer steps are not counted. Most conditions are this cheap, and counting writes to the job. */
const uncountedSteps = 1000

/**
 * Evaluates a stage's condition and list when the stage would open. An error fails the stage. Evaluation that exceeds
 * the steps left in this transaction is postponed.
 */
export async function evaluateConditions(
  tx: Sql,
  locked: LockedJob,
  stage: StageRow,
  budget: ConditionBudget,
): Promise<void> {
  const { remaining: stepsLeft } = budget
  if (stepsLeft === 0) return locked.postponeConditions(stage)
  const { scope, bytes } = await readScope(tx, locked, stage)
  budget.spend(bytes / bytesPerStep)
  if (scope === undefined)
    return failStage(locked, stage, `the condition reads more than ${maxOutputBytes / 2 ** 20} MiB of outputs`)
  const { conditionSteps } = locked.job
  const most = Math.min(mostSteps, Math.max(0, stepsPerJob - conditionSteps))
  const meter = new Meter(Math.min(stepsLeft, most))
  let isPostponed = false
  let stepsToStore = 0
  try {
    const patch = evaluate(stage, scope, meter)
    stepsToStore = stepsToStoreFan(stage, patch)
    if (conditionSteps + stepsToStore > stepsPerJob) failStage(locked, stage, outOfBudget)
    else locked.setStage(stage, patch)
  } catch (error) {
    const isOut = (error as Error).cause instanceof OutOfSteps
    isPostponed = isOut && stepsLeft < most
    if (isPostponed) return locked.postponeConditions(stage)
    failStage(locked, stage, isOut && most < mostSteps ? outOfBudget : (error as Error).message)
  } finally {
    const steps = meter.total - Math.max(0, meter.left) + stepsToStore
    budget.spend(steps)
    // A postponed evaluation is repeated in a turn and counted there.
    if (steps > uncountedSteps && !isPostponed) locked.setJob({ conditionSteps: conditionSteps + Math.round(steps) })
  }
}

/** The payloads of new tasks count once: they are on pages of their own. */
function stepsToStoreFan({ plan }: StageRow, { fan }: StagePatch): number {
  if (fan === undefined || fan === null) return 0
  return JSON.stringify(fan).length * (plan.gives === undefined ? 1 : stepsPerCharacter)
}

const outOfBudget = `the conditions of this job have used up their budget of ${stepsPerJob.toLocaleString('en')} steps`

function failStage(locked: LockedJob, stage: StageRow, message: string): void {
  locked.setStage(stage, { opening: 'error', error: { message } })
}

/** Evaluates a stage's condition and list. */
function evaluate({ plan, total }: StageRow, scope: Scope, meter: Meter): StagePatch {
  const { when, forEach, gives = null } = plan
  if (when !== null && !evaluateWhen(when, scope, meter)) return { opening: 'no' }
  if (gives !== null) return { opening: 'yes', fan: [evaluateGives(gives, scope, meter)], fanned: 1 }
  if (forEach === null) return { opening: 'yes' }
  const list = evaluateForEach(forEach, scope, meter)
  return { opening: 'yes', fan: list, fanned: 0, unfanned: list.length, total: total + list.length }
}

/**
 * Reads everything a condition can see: the job's input, and the states, outputs and approvals of the stages that it
 * names. `scope` is missing if the outputs are too large.
 */
async function readScope(tx: Sql, locked: LockedJob, { plan }: StageRow): Promise<{ scope?: Scope; bytes: number }> {
  await locked.readMissing(tx, 'all')
  const texts = [plan.when, plan.forEach, plan.gives ?? null].filter(text => text !== null)
  const names = new Set(texts.flatMap(stagesNamedIn))
  const named = locked.stages.filter(({ kind, name }) => kind === 'work' && names.has(name))
  const valueStages = named.filter(({ plan }) => plan.gives !== undefined)
  // A value may have been set earlier in this transaction.
  if (valueStages.length > 0) await locked.write(tx)
  const ids = { tasksOf: named.map(({ id }) => id), valuesOf: valueStages.map(({ id }) => id) }
  const { outputs, values, bytes } = await readOutputs(tx, ids, maxOutputBytes)
  if (outputs === null || values === null) return { bytes: 0 }
  const stages = Object.fromEntries(
    named.map(stage => {
      const output = stage.plan.gives === undefined ? outputInScope(stage, outputs) : (values[stage.id] ?? null)
      return [stage.name, stageInScope(stage, output)]
    }),
  )
  const { input, bytes: inputBytes } = await readInput(tx, locked, texts)
  return { scope: { input, stages }, bytes: bytes + inputBytes }
}

const inputs = new WeakMap<LockedJob, unknown>()

/** Reads the job's input, which may be large: once per transaction, and only if an expression names it. */
async function readInput(
  tx: Sql,
  locked: LockedJob,
  texts: readonly string[],
): Promise<{ input: unknown; bytes: number }> {
  if (!texts.some(text => /\binput\b/.test(text))) return { input: null, bytes: 0 }
  if (inputs.has(locked)) return { input: inputs.get(locked), bytes: 0 }
  const read = await readJobInput(tx, locked.job.id)
  inputs.set(locked, read.input)
  return read
}

function outputInScope({ id, plan }: StageRow, outputs: Readonly<Record<string, unknown[]>>): unknown {
  const mine = outputs[id] ?? []
  return plan.single ? (mine[0] ?? null) : mine
}

function stageInScope(stage: StageFacts & Pick<StageRow, 'given'>, output: unknown) {
  const { state, total, good, bad, given: approvals } = stage
  return { state, output, total, good, bad, approvals }
}

/** Maximum number of steps for conditions in a transaction that is not a turn: about 10 milliseconds. */
const stepsPerTransaction = 100_000
/** The same limit while the queue for turns is full. Enough for most conditions. */
const stepsWhileFull = 5000
/** Maximum number of steps per second in turns: roughly a fifth of one processor. */
export const stepsPerSecond = 2_000_000
/** Maximum number of jobs that wait for a turn in this process. Further jobs are left to the babysitter. */
const maxWaitingJobs = 1000

/** Steps that the conditions of one transaction may take together. */
export class ConditionBudget {
  #spent = 0
  readonly #total: number
  readonly #isTurn: boolean

  /** The first condition of a turn may take the maximum for any condition, so each turn makes progress. */
  constructor(total = stepsPerTransaction, isTurn = false) {
    this.#total = total
    this.#isTurn = isTurn
  }

  static forTurn(): ConditionBudget {
    return new ConditionBudget(mostSteps, true)
  }

  get spent(): number {
    return this.#spent
  }

  /** Steps left for the next condition. */
  get remaining(): number {
    return this.#isTurn && this.#spent === 0 ? mostSteps : Math.max(0, this.#total - this.#spent)
  }

  spend(steps: number): void {
    this.#spent += steps
  }
}

export interface TurnResult {
  /** Steps that the turn took. */
  readonly steps: number
  /** Whether its job needs another turn. */
  readonly needsAnother: boolean
}

/** Runs the turns of jobs in FIFO order. */
export class ConditionTurns {
  readonly #waiting = new Map<string, () => Promise<TurnResult>>()
  readonly #signal: AbortSignal
  #isRunning = false

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  /** When full, further jobs are left to the babysitter. It retries them often, so each attempt must be cheap. */
  get #isFull(): boolean {
    return this.#waiting.size >= maxWaitingJobs
  }

  /** The conditions of a job that already waits for a turn are known to be costly, so none is evaluated. */
  budgetFor(jobId: string, budget = this.newBudget()): ConditionBudget {
    return this.#waiting.has(jobId) ? new ConditionBudget(0) : budget
  }

  newBudget(): ConditionBudget {
    return new ConditionBudget(this.#isFull ? stepsWhileFull : stepsPerTransaction)
  }

  /** Calls `takeTurn`, which must not throw, when the job's turn comes. */
  enqueue(jobId: string, take: () => Promise<TurnResult>): void {
    if (this.#waiting.has(jobId) || this.#isFull) return
    this.#waiting.set(jobId, take)
    if (!this.#isRunning) void this.#run()
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    for (const [jobId, take] of this.#waiting) {
      if (this.#signal.aborted) break
      const { steps, needsAnother } = await take()
      this.#waiting.delete(jobId)
      // Moves to the end of the queue, so a job with many costly conditions does not delay others.
      if (needsAnother) this.#waiting.set(jobId, take)
      await sleep((steps / stepsPerSecond) * 1000, undefined, { signal: this.#signal, ref: false }).catch(() => {})
    }
    this.#isRunning = false
  }
}

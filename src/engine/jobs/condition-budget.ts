/**
 * Limits the computation of job conditions. Cheap conditions are evaluated in the transaction that opens their stage. A
 * condition that needs more steps than are left there is postponed to a turn of its job. Each turn is a transaction of
 * its own. Turns run one after another with pauses in between, so costly conditions take only a part of each second,
 * and every job gets its share.
 *
 * A postponed condition is stored as pending work of its job. If this process ends before the turn comes, the
 * babysitter of another process continues.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { mostSteps } from '../../spec/conditions.ts'

/** Maximum number of steps for all conditions of a job in one round. */
export const stepsPerJob = 30_000_000
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

  private constructor(total: number, isTurn: boolean) {
    this.#total = total
    this.#isTurn = isTurn
  }

  static normal(): ConditionBudget {
    return new ConditionBudget(stepsPerTransaction, false)
  }

  /** The first condition of a turn may take the maximum for any condition, so each turn makes progress. */
  static forTurn(): ConditionBudget {
    return new ConditionBudget(mostSteps, true)
  }

  static whileFull(): ConditionBudget {
    return new ConditionBudget(stepsWhileFull, false)
  }

  /** No condition is evaluated. */
  static none(): ConditionBudget {
    return new ConditionBudget(0, false)
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
  get isFull(): boolean {
    return this.#waiting.size >= maxWaitingJobs
  }

  isWaiting(jobId: string): boolean {
    return this.#waiting.has(jobId)
  }

  /** Calls `takeTurn`, which must not throw, when the job's turn comes. */
  enqueue(jobId: string, take: () => Promise<TurnResult>): void {
    if (this.#waiting.has(jobId) || this.isFull) return
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

/**
 * How much the conditions of jobs may compute. Cheap ones are evaluated in the transaction that opens their stage. One
 * that needs more steps than that transaction has left is postponed to a turn of its job: a transaction of its own, one
 * turn after the other, with pauses in between. So costly conditions take only a part of each second, and every job with
 * costly conditions gets its share.
 *
 * A postponed condition is kept as an errand of its job. If this process ends before the turn comes, the babysitter of
 * another one goes on.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { mostSteps } from '../../spec/conditions.ts'

/** Steps that all conditions of a job may take in one round. */
export const stepsPerJob = 30_000_000
/** Steps that conditions may take in a transaction that is not a turn: about 10 milliseconds. */
const stepsPerTransaction = 100_000
/** The same while no more jobs can wait for a turn: enough for most conditions. */
const stepsWhileFull = 5000
/** Steps that turns may take: roughly a fifth of the time of one processor. */
export const stepsPerSecond = 2_000_000
/** Most jobs that wait for a turn in this process. More are left to the babysitter. */
const maxWaitingJobs = 1000

/** The steps that the conditions of one transaction may take together. */
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

  /** In a turn the first condition has as many steps as any condition may take, so each turn gets on with its job. */
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

  /** Steps that the next condition may take. */
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

/** Gives jobs their turns, first come, first served. */
export class Turns {
  readonly #waiting = new Map<string, () => Promise<TurnResult>>()
  readonly #signal: AbortSignal
  #isRunning = false

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  /** Further jobs are left to the babysitter, which tries each of them again and again: that must cost little. */
  get isFull(): boolean {
    return this.#waiting.size >= maxWaitingJobs
  }

  isWaiting(jobId: string): boolean {
    return this.#waiting.has(jobId)
  }

  /** `take` is called when the job's turn comes. It must not throw. */
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
      // Behind the others that wait: a job with many costly conditions holds up nobody's turn.
      if (needsAnother) this.#waiting.set(jobId, take)
      await sleep((steps / stepsPerSecond) * 1000, undefined, { signal: this.#signal, ref: false }).catch(() => {})
    }
    this.#isRunning = false
  }
}

/** Performs the actions that the kernel decides for a job, as many as fit into one transaction (advance-job.ts). */
import type { Act } from '../../kernel/advance.ts'
import { cancel } from '../../kernel/decide.ts'
import { newId } from '../../kernel/id.ts'
import { isFinal } from '../../kernel/lifecycle.ts'
import { NextActs } from '../../kernel/next-acts.ts'
import { queueOfStage } from '../../kernel/plan.ts'
import { Problem } from '../../kernel/problem.ts'
import { type StageState, stageLifecycle } from '../../kernel/stage.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { startListing } from '../../store/files/listings.ts'
import { type Batch, findEndOfBatch, readListElements, skipBlocked, tasksAfter } from '../../store/jobs/errands.ts'
import type { StageRow } from '../../store/jobs/jobs.ts'
import { insertStageTasks } from '../../store/jobs/new-job.ts'
import type { PayloadVersions } from '../../store/tasks/payload-schemas.ts'
import { decideTasks } from '../../store/tasks/task-updates.ts'
import type { Context } from '../context.ts'
import { insertChecked } from '../tasks/payload-checks.ts'
import { planCompensation } from './compensate.ts'
import { type ConditionBudget, evaluateConditions } from './evaluate-conditions.ts'
import type { LockedJob } from './locked-job.ts'
import { reviveBatch } from './revive.ts'

/** Cost of evaluating a condition, as a number of tasks. */
const budgetPerCondition = 4
/** Minimum cost of cancelling or skipping the tasks of one stage, as a number of tasks. */
const budgetPerBatch = 4

/** Returns the longest prefix of these stages whose tasks together fit into the budget. */
function fittingStages(taskBudget: number, stages: readonly StageRow[]): StageRow[] {
  let tasks = 0
  const end = stages.findIndex(({ total, unfanned }) => {
    tasks += total - unfanned
    return tasks >= taskBudget
  })
  return end === -1 ? [...stages] : stages.slice(0, end)
}

export class ActionRunner {
  #budget: number
  readonly #schemas
  readonly #tx
  readonly #locked
  readonly #actor
  readonly #conditionBudget
  /** Stages whose tasks are to be cancelled or skipped once no stage has another action. */
  readonly #deferredEnds = new Map<StageRow, 'call off' | 'pass over'>()

  constructor(
    { types }: Pick<Context, 'types'>,
    tx: Sql,
    locked: LockedJob,
    actor: string,
    budget: number,
    conditionBudget: ConditionBudget,
  ) {
    this.#schemas = types.schemas
    this.#tx = tx
    this.#locked = locked
    this.#actor = actor
    this.#budget = budget
    this.#conditionBudget = conditionBudget
  }

  /** Returns the budget that is left for the tasks of other jobs. */
  async runAll(): Promise<number> {
    const locked = this.#locked
    for (const stage of locked.stages) {
      // Pending work resumes where it stopped: the kernel asks for it again. The kernel does not know about revivals,
      // so they are done here.
      if (stage.errand === 'revive' || stage.errand === 'reopen') await this.#revive(stage, stage.errand)
      else if (stage.busy) Object.assign(stage, { busy: false })
    }
    let nextActs = new NextActs(locked.job, locked.stages)
    for (;;) {
      await locked.readMissing(this.#tx, 'if needed')
      if (nextActs.size !== locked.stages.length) nextActs = new NextActs(locked.job, locked.stages)
      const action = nextActs.ofStages(locked.takeChanged())
      if (action !== undefined) await this.#perform(action)
      else if (!(await this.#endDeferred())) {
        const last = nextActs.ofJob()
        if (last === undefined) return this.#budget
        await this.#perform(last)
      }
    }
  }

  async #perform(act: Act): Promise<void> {
    const locked = this.#locked
    switch (act.act) {
      case 'move stage':
        return this.#moveStage(act.stage as StageRow, act.to, act.cause)
      case 'intend stage':
        return locked.decideStageEnd(act.stage as StageRow, act.endsAs, act.cause)
      case 'evaluate':
        return this.#evaluateConditions(act.stage as StageRow)
      case 'intend job':
        return locked.setJob({ endsAs: act.endsAs, endsCause: act.cause })
      case 'move job':
        return this.#moveJob(act.to, act.cause)
      case 'list':
        await startListing(this.#tx, act.stage as StageRow)
        locked.startsListing = true
        return locked.setStage(act.stage as StageRow, { listing: 'under way' })
      case 'plan undoing':
        return planCompensation(this.#tx, locked)
      case 'call off':
      case 'pass over':
        this.#deferredEnds.set(act.stage as StageRow, act.act)
        return locked.defer(act.stage as StageRow)
      default:
        return this.#releaseOrFanOut(act.act, act.stage as StageRow)
    }
  }

  async #evaluateConditions(stage: StageRow): Promise<void> {
    // The condition is left to a turn and must not use up the budget for actions that can be done now.
    if (this.#conditionBudget.remaining === 0) return this.#locked.postponeConditions(stage)
    if (this.#budget < budgetPerCondition) return this.#locked.defer(stage)
    this.#budget -= budgetPerCondition
    await evaluateConditions(this.#tx, this.#locked, stage, this.#conditionBudget)
  }

  #moveStage(stage: StageRow, to: StageState, cause: string): void {
    const seconds = stage.plan.gate?.timeoutSeconds ?? null
    const isGate = to === 'waiting' && seconds !== null && stage.state === 'created'
    const gateUntil = isGate ? new Date(this.#locked.job.now.getTime() + seconds * 1000).toISOString() : null
    // A hold ends pending work on the tasks. It starts from the first task again after the hold, because some tasks may
    // have been revived meanwhile.
    const clearedWork = to === 'waiting' ? { errand: null, errandAt: null } : {}
    const endedByItself = stage.endsAs === null
    const ended = isFinal(stageLifecycle, to)
      ? { endedIn: this.#locked.job.round, ...(endedByItself && { error: null }) }
      : {}
    this.#locked.moveStage(stage, { to, cause, actor: 'engine' }, { gateUntil, ...clearedWork, ...ended })
  }

  #moveJob(to: LockedJob['job']['state'], cause: string): void {
    const locked = this.#locked
    if (locked.job.state !== 'compensating') {
      locked.moveJob({ to, cause, actor: 'engine' })
      return
    }
    const undo = locked.stages.filter(({ kind }) => kind === 'undo')
    const payload = {
      undone: undo.reduce((sum, { good }) => sum + good, 0),
      failed: undo.reduce((sum, { bad }) => sum + bad, 0),
    }
    locked.moveJob({ to: 'compensating', type: 'job.compensated', cause: 'compensated', actor: 'engine', payload })
    locked.moveJob({ to, cause, actor: 'engine' }, { compensated: true })
  }

  /** Processes one batch of tasks of a stage. If the budget is used up, the next transaction does it. */
  async #releaseOrFanOut(errand: 'release' | 'fan out', stage: StageRow): Promise<void> {
    const locked = this.#locked
    if (this.#budget === 0) return locked.defer(stage)
    const limit = this.#budget
    locked.queuesToWake.add(queueOfStage(stage))
    const { last, seen } = await (errand === 'release' ? this.#release(stage, limit) : this.#fanOut(stage, limit))
    this.#budget -= Math.min(limit, seen)
    if (seen >= limit) return locked.setStage(stage, { errand, errandAt: last })
    locked.setStage(stage, { errand: null, errandAt: null })
  }

  /**
   * Cancels or skips the tasks of deferred stages, with the same statements for as many stages as the budget allows.
   * Returns whether there was anything to do. The next transaction does the rest.
   */
  async #endDeferred(): Promise<boolean> {
    const [first] = this.#deferredEnds
    if (first === undefined || this.#budget === 0) return false
    const [, errand] = first
    const limit = this.#budget
    const alike = [...this.#deferredEnds].flatMap(([stage, wanted]) => (wanted === errand ? [stage] : []))
    const fitting = fittingStages(limit, alike)
    const stages = fitting.length === 0 ? alike.slice(0, 1) : fitting
    for (const stage of stages) this.#deferredEnds.delete(stage)
    const { last, seen } = await this.#endTasks(errand, stages, fitting.length === 0 ? limit : null)
    this.#budget -= Math.min(limit, Math.max(seen, budgetPerBatch))
    const done = errand === 'call off' ? { calledOff: true } : {}
    for (const stage of stages) {
      this.#locked.queuesToWake.add(queueOfStage(stage))
      if (fitting.length === 0 && seen >= limit) this.#locked.setStage(stage, { errand, errandAt: last })
      // All tasks have been processed, so no blocked task is left.
      else this.#locked.setStage(stage, { ...done, blocked: 0, errand: null, errandAt: null })
    }
    return true
  }

  async #endTasks(errand: 'call off' | 'pass over', stages: readonly StageRow[], limit: number | null): Promise<Batch> {
    const locked = this.#locked
    await locked.closeLanes(this.#tx)
    if (errand === 'pass over') return this.#skipTasks(stages, limit)
    const batch = await this.#cancelTasks(stages, limit)
    await locked.recount(this.#tx)
    return batch
  }

  async #skipTasks(stages: readonly StageRow[], limit: number | null): Promise<Batch> {
    const passed = new Map((await skipBlocked(this.#tx, stages, limit)).map(one => [one.stageId, one]))
    for (const stage of stages) this.#locked.addSkipped(stage, passed.get(stage.id)?.skipped ?? 0)
    const seen = [...passed.values()].reduce((sum, one) => sum + one.seen, 0)
    return { last: passed.get(stages[0]!.id)?.last ?? null, seen }
  }

  /** If the stage has few tasks, the final write releases them without reading them. */
  async #release(stage: StageRow, limit: number): Promise<Batch> {
    const { id: stageId, errandAt: after, total, unfanned } = stage
    const tasks = total - unfanned
    const last = tasks < limit ? null : await findEndOfBatch(this.#tx, { stageId, after, limit })
    this.#locked.releaseTasks(stage, last)
    return { last, seen: last === null ? Math.min(tasks, limit - 1) : limit }
  }

  async #fanOut(stage: StageRow, limit: number): Promise<Batch> {
    const { job } = this.#locked
    await this.#locked.write(this.#tx)
    const elements = await readListElements(this.#tx, stage.id, stage.fanned, limit)
    const tasks = elements.map(element => ({ id: newId(), type: stage.plan.task!, payload: JSON.stringify(element) }))
    const batch = { stageId: stage.id, state: 'queued' as const, settings: stage.plan.settings, tasks }
    const insert = (versions: PayloadVersions) => insertStageTasks(this.#tx, job, [batch], 'engine', versions)
    const fanned = stage.fanned + elements.length
    try {
      // If the schema refused the payload of an undo, nobody could correct it. A dead letter can be redriven.
      if (stage.kind === 'undo') await insert('unchecked')
      else await insertChecked(this.#schemas, this.#tx, { tasks, at: n => `forEach[${stage.fanned + n}]` }, insert)
    } catch (error) {
      if (!(error instanceof Problem && error.code === 'PAYLOAD_REFUSED')) throw error
      this.#locked.decideStageEnd(stage, 'failed', 'condition_error', { error: { message: error.message } })
      return { last: null, seen: 0 }
    }
    this.#locked.setStage(stage, { fanned, unfanned: stage.unfanned - elements.length })
    return { last: null, seen: elements.length }
  }

  async #cancelTasks(stages: readonly StageRow[], limit: number | null): Promise<Batch> {
    const tasks = await tasksAfter(this.#tx, stages, limit)
    const open = tasks.flatMap(({ id, isEnded }) => (isEnded ? [] : [id]))
    const byId = new Map(stages.map(stage => [stage.id, stage]))
    await decideTasks(this.#tx, open, this.#actor, task => {
      const { endsHard, endsCause } = byId.get(task.stageId!)!
      return cancel(task, endsHard ? 'hard' : 'soft', endsCause ?? undefined)
    })
    return { last: tasks.at(-1)?.id ?? null, seen: tasks.length }
  }

  async #revive(stage: StageRow, errand: 'revive' | 'reopen'): Promise<void> {
    if (this.#budget === 0) return
    const limit = this.#budget
    await this.#locked.write(this.#tx)
    const { last, seen } = await reviveBatch(this.#tx, stage, limit, this.#actor)
    this.#budget -= Math.min(limit, seen)
    await this.#locked.recount(this.#tx)
    if (seen >= limit) this.#locked.setStage(stage, { errand, errandAt: last })
    else this.#locked.setStage(stage, { errand: null, errandAt: null, badBefore: stage.bad })
  }
}

/** One transaction's worth of driving: asks the kernel what a job does next, does it, and asks again until there is nothing. */
import { type Act, nextAct } from '../kernel/advance.ts'
import { cancel } from '../kernel/decide.ts'
import { newId } from '../kernel/id.ts'
import { isFinal } from '../kernel/lifecycle.ts'
import { queueOfStage } from '../kernel/plan.ts'
import { type StageState, stageLifecycle } from '../kernel/stage.ts'
import { type Batch, endOfBatch, fanSlice, skipBlocked, tasksAfter } from '../store/errands.ts'
import type { Errand, StageRow } from '../store/jobs.ts'
import { keepListing } from '../store/listings.ts'
import type { Sql } from '../store/sql.ts'
import { insertStageTasks } from '../store/stage-tasks.ts'
import { lockTasks, type Ruling, writeRulings } from '../store/verdicts.ts'
import type { Allowance } from './condition-budget.ts'
import type { JobBook } from './job-book.ts'
import { lookAt } from './look.ts'
import { reviveBatch } from './revive.ts'
import { planUndoing } from './undo.ts'

export class JobRun {
  #room: number
  readonly #tx
  readonly #book
  readonly #actor
  readonly #allowance

  constructor(tx: Sql, book: JobBook, actor: string, room: number, allowance: Allowance) {
    this.#tx = tx
    this.#book = book
    this.#actor = actor
    this.#room = room
    this.#allowance = allowance
  }

  /** Answers with the room that is left for tasks of others. */
  async toTheEnd(): Promise<number> {
    for (const stage of this.#book.stages) {
      // An errand is taken up where it was left: the kernel asks for it again. A revival it does not know of.
      if (stage.errand === 'revive' || stage.errand === 'reopen') await this.#revive(stage, stage.errand)
      else if (stage.busy) Object.assign(stage, { busy: false })
    }
    for (;;) {
      await this.#book.readRest(this.#tx, 'if needed')
      const act = nextAct(this.#book.job, this.#book.stages)
      if (act === undefined) return this.#room
      await this.#do(act)
    }
  }

  async #do(act: Act): Promise<void> {
    const book = this.#book
    switch (act.act) {
      case 'move stage':
        return this.#moveStage(act.stage as StageRow, act.to, act.cause)
      case 'intend stage':
        return book.intendStage(act.stage as StageRow, act.endsAs, act.cause)
      case 'look':
        return lookAt(this.#tx, book, act.stage as StageRow, this.#allowance)
      case 'intend job':
        return book.setJob({ endsAs: act.endsAs, endsCause: act.cause })
      case 'move job':
        return this.#moveJob(act.to, act.cause)
      case 'list':
        await keepListing(this.#tx, act.stage as StageRow)
        book.lists = true
        return book.setStage(act.stage as StageRow, { listing: 'under way' })
      case 'plan undoing':
        return planUndoing(this.#tx, book)
      default:
        return this.#errand(act.act, act.stage as StageRow)
    }
  }

  #moveStage(stage: StageRow, to: StageState, cause: string): void {
    const seconds = stage.plan.gate?.timeoutSeconds ?? null
    const isGate = to === 'waiting' && seconds !== null && stage.state === 'created'
    const gateUntil = isGate ? new Date(this.#book.job.now.getTime() + seconds * 1000).toISOString() : null
    // A hold ends what was being done to its tasks; it begins anew behind the hold, for some may have come back.
    const afresh = to === 'waiting' ? { errand: null, errandAt: null } : {}
    const isByItself = stage.endsAs === null
    const ended = isFinal(stageLifecycle, to)
      ? { endedIn: this.#book.job.round, ...(isByItself && { error: null }) }
      : {}
    this.#book.moveStage(stage, { to, cause, actor: 'engine' }, { gateUntil, ...afresh, ...ended })
  }

  #moveJob(to: JobBook['job']['state'], cause: string): void {
    const book = this.#book
    if (book.job.state !== 'compensating') {
      book.moveJob({ to, cause, actor: 'engine' })
      return
    }
    const undo = book.stages.filter(({ kind }) => kind === 'undo')
    const payload = {
      undone: undo.reduce((sum, { good }) => sum + good, 0),
      failed: undo.reduce((sum, { bad }) => sum + bad, 0),
    }
    book.moveJob({ to: 'compensating', type: 'job.compensated', cause: 'compensated', actor: 'engine', payload })
    book.moveJob({ to, cause, actor: 'engine' }, { compensated: true })
  }

  /** A batch of what concerns a stage's tasks; without room for one, it is left to the next transaction. */
  async #errand(errand: Errand, stage: StageRow): Promise<void> {
    const book = this.#book
    if (this.#room === 0) return book.setStage(stage, { errand })
    const limit = this.#room
    book.told.add(queueOfStage(stage))
    const { last, seen } = await this.#batch(errand, stage, limit)
    this.#room -= Math.min(limit, seen)
    if (seen >= limit) return book.setStage(stage, { errand, errandAt: last })
    // It has been through all of them, so none is left to wait for it.
    const done = errand === 'call off' ? { calledOff: true, blocked: 0 } : errand === 'pass over' ? { blocked: 0 } : {}
    book.setStage(stage, { ...done, errand: null, errandAt: null })
  }

  async #batch(errand: Errand, stage: StageRow, limit: number): Promise<Batch> {
    if (errand === 'release') return this.#release(stage, limit)
    const book = this.#book
    await book.write(this.#tx)
    if (errand === 'fan out') return this.#fanOut(stage, limit)
    const ask = { jobId: stage.jobId, stageId: stage.id, after: stage.errandAt, limit }
    const batch =
      errand === 'pass over'
        ? await skipBlocked(this.#tx, { ...ask, cause: stage.endsCause ?? 'skipped' })
        : await this.#callOff(stage, limit)
    await book.recount(this.#tx)
    return batch
  }

  /** Of a stage that has few tasks none need be read: they are released with what is written at the end. */
  async #release(stage: StageRow, limit: number): Promise<Batch> {
    const { id: stageId, errandAt: after, total, unfanned } = stage
    const tasks = total - unfanned
    const last = tasks < limit ? null : await endOfBatch(this.#tx, { stageId, after, limit })
    this.#book.release(stage, last)
    return { last, seen: last === null ? Math.min(tasks, limit - 1) : limit }
  }

  async #fanOut(stage: StageRow, limit: number): Promise<Batch> {
    const { job } = this.#book
    const elements = await fanSlice(this.#tx, stage.id, stage.fanned, limit)
    const tasks = elements.map(element => ({ id: newId(), type: stage.plan.task!, payload: JSON.stringify(element) }))
    const batch = { stageId: stage.id, state: 'queued' as const, settings: stage.plan.settings, tasks }
    await insertStageTasks(this.#tx, job, [batch], 'engine')
    const fanned = stage.fanned + elements.length
    this.#book.setStage(stage, { fanned, unfanned: stage.unfanned - elements.length })
    return { last: null, seen: elements.length }
  }

  async #callOff(stage: StageRow, limit: number): Promise<Batch> {
    const tasks = await tasksAfter(this.#tx, { stageId: stage.id, after: stage.errandAt, limit })
    const open = tasks.flatMap(({ id, isEnded }) => (isEnded ? [] : [id]))
    const mode = stage.endsHard ? 'hard' : 'soft'
    const rulings = (await lockTasks(this.#tx, open)).flatMap((task): Ruling[] => {
      const verdict = cancel(task, mode, stage.endsCause ?? undefined)
      return verdict.ok ? [{ task, steps: verdict.steps, patch: verdict.patch }] : []
    })
    await writeRulings(this.#tx, rulings, this.#actor)
    return { last: tasks.at(-1)?.id ?? null, seen: tasks.length }
  }

  async #revive(stage: StageRow, errand: 'revive' | 'reopen'): Promise<void> {
    if (this.#room === 0) return
    const limit = this.#room
    await this.#book.write(this.#tx)
    const { last, seen } = await reviveBatch(this.#tx, stage, limit, this.#actor)
    this.#room -= Math.min(limit, seen)
    await this.#book.recount(this.#tx)
    if (seen >= limit) this.#book.setStage(stage, { errand, errandAt: last })
    else this.#book.setStage(stage, { errand: null, errandAt: null, badBefore: stage.bad })
  }
}

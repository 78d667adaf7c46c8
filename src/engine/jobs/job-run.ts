/** One transaction's worth of what a job does next (drive.ts). */
import type { Act } from '../../kernel/advance.ts'
import { Agenda } from '../../kernel/agenda.ts'
import { cancel } from '../../kernel/decide.ts'
import { newId } from '../../kernel/id.ts'
import { isFinal } from '../../kernel/lifecycle.ts'
import { queueOfStage } from '../../kernel/plan.ts'
import { type StageState, stageLifecycle } from '../../kernel/stage.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { startListing } from '../../store/files/listings.ts'
import { type Batch, findEndOfBatch, readListElements, skipBlocked, tasksAfter } from '../../store/jobs/errands.ts'
import type { StageRow } from '../../store/jobs/jobs.ts'
import { insertStageTasks } from '../../store/jobs/stage-tasks.ts'
import { lockTasks, type TaskUpdate, writeTaskUpdates } from '../../store/tasks/task-updates.ts'
import { planUndoing } from './compensate.ts'
import type { Allowance } from './condition-budget.ts'
import { lookAt } from './evaluate-conditions.ts'
import type { JobBook } from './locked-job.ts'
import { reviveBatch } from './revive.ts'

/** A condition takes as much of a transaction as this number of tasks. */
const roomPerLook = 4
/** The least that calling off or passing over the tasks of one stage costs, in tasks. */
const roomPerBatch = 4

/** The first of these stages, as many as have fewer tasks together than there is room for. */
function fittingIn(room: number, stages: readonly StageRow[]): StageRow[] {
  let tasks = 0
  const end = stages.findIndex(({ total, unfanned }) => {
    tasks += total - unfanned
    return tasks >= room
  })
  return end === -1 ? [...stages] : stages.slice(0, end)
}

export class JobRun {
  #room: number
  readonly #tx
  readonly #book
  readonly #actor
  readonly #allowance
  /** Stages whose tasks are to be called off or passed over, when no stage has anything else to do. */
  readonly #gathered = new Map<StageRow, 'call off' | 'pass over'>()

  constructor(tx: Sql, book: JobBook, actor: string, room: number, allowance: Allowance) {
    this.#tx = tx
    this.#book = book
    this.#actor = actor
    this.#room = room
    this.#allowance = allowance
  }

  /** Answers with the room that is left for tasks of others. */
  async toTheEnd(): Promise<number> {
    const book = this.#book
    for (const stage of book.stages) {
      // An errand is taken up where it was left: the kernel asks for it again. It does not know of revivals, so they are done here.
      if (stage.errand === 'revive' || stage.errand === 'reopen') await this.#revive(stage, stage.errand)
      else if (stage.busy) Object.assign(stage, { busy: false })
    }
    let agenda = new Agenda(book.job, book.stages)
    for (;;) {
      await book.readRest(this.#tx, 'if needed')
      if (agenda.size !== book.stages.length) agenda = new Agenda(book.job, book.stages)
      const act = agenda.nextOfStages(book.takeChanged())
      if (act !== undefined) await this.#do(act)
      else if (!(await this.#endGathered())) {
        const last = agenda.nextOfJob()
        if (last === undefined) return this.#room
        await this.#do(last)
      }
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
        return this.#look(act.stage as StageRow)
      case 'intend job':
        return book.setJob({ endsAs: act.endsAs, endsCause: act.cause })
      case 'move job':
        return this.#moveJob(act.to, act.cause)
      case 'list':
        await startListing(this.#tx, act.stage as StageRow)
        book.lists = true
        return book.setStage(act.stage as StageRow, { listing: 'under way' })
      case 'plan undoing':
        return planUndoing(this.#tx, book)
      case 'call off':
      case 'pass over':
        this.#gathered.set(act.stage as StageRow, act.act)
        return book.putOff(act.stage as StageRow)
      default:
        return this.#errand(act.act, act.stage as StageRow)
    }
  }

  async #look(stage: StageRow): Promise<void> {
    // It would be left to a turn, so it takes no room from what can be done now.
    if (this.#allowance.room === 0) return this.#book.postpone(stage)
    if (this.#room < roomPerLook) return this.#book.putOff(stage)
    this.#room -= roomPerLook
    await lookAt(this.#tx, this.#book, stage, this.#allowance)
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
  async #errand(errand: 'release' | 'fan out', stage: StageRow): Promise<void> {
    const book = this.#book
    if (this.#room === 0) return book.putOff(stage)
    const limit = this.#room
    book.told.add(queueOfStage(stage))
    const { last, seen } = await (errand === 'release' ? this.#release(stage, limit) : this.#fanOut(stage, limit))
    this.#room -= Math.min(limit, seen)
    if (seen >= limit) return book.setStage(stage, { errand, errandAt: last })
    book.setStage(stage, { errand: null, errandAt: null })
  }

  /**
   * Calls off or passes over tasks of the stages that were gathered: of as many stages as there is room for, with the
   * statements of one. Answers whether there was anything to do; what there is no room for is left to the next
   * transaction.
   */
  async #endGathered(): Promise<boolean> {
    const [first] = this.#gathered
    if (first === undefined || this.#room === 0) return false
    const [, errand] = first
    const limit = this.#room
    const alike = [...this.#gathered].flatMap(([stage, wanted]) => (wanted === errand ? [stage] : []))
    const fitting = fittingIn(limit, alike)
    const stages = fitting.length === 0 ? alike.slice(0, 1) : fitting
    for (const stage of stages) this.#gathered.delete(stage)
    const { last, seen } = await this.#endTasks(errand, stages, fitting.length === 0 ? limit : null)
    this.#room -= Math.min(limit, Math.max(seen, roomPerBatch))
    const done = errand === 'call off' ? { calledOff: true } : {}
    for (const stage of stages) {
      this.#book.told.add(queueOfStage(stage))
      if (fitting.length === 0 && seen >= limit) this.#book.setStage(stage, { errand, errandAt: last })
      // It has been through all of them, so none is left to wait for it.
      else this.#book.setStage(stage, { ...done, blocked: 0, errand: null, errandAt: null })
    }
    return true
  }

  async #endTasks(errand: 'call off' | 'pass over', stages: readonly StageRow[], limit: number | null): Promise<Batch> {
    const book = this.#book
    await book.closeLanes(this.#tx)
    if (errand === 'pass over') return this.#passOver(stages, limit)
    const batch = await this.#callOff(stages, limit)
    await book.recount(this.#tx)
    return batch
  }

  async #passOver(stages: readonly StageRow[], limit: number | null): Promise<Batch> {
    const passed = new Map((await skipBlocked(this.#tx, stages, limit)).map(one => [one.stageId, one]))
    for (const stage of stages) this.#book.addSkipped(stage, passed.get(stage.id)?.skipped ?? 0)
    const seen = [...passed.values()].reduce((sum, one) => sum + one.seen, 0)
    return { last: passed.get(stages[0]!.id)?.last ?? null, seen }
  }

  /** The tasks of a stage that has few are released by the final write, without being read. */
  async #release(stage: StageRow, limit: number): Promise<Batch> {
    const { id: stageId, errandAt: after, total, unfanned } = stage
    const tasks = total - unfanned
    const last = tasks < limit ? null : await findEndOfBatch(this.#tx, { stageId, after, limit })
    this.#book.release(stage, last)
    return { last, seen: last === null ? Math.min(tasks, limit - 1) : limit }
  }

  async #fanOut(stage: StageRow, limit: number): Promise<Batch> {
    const { job } = this.#book
    await this.#book.write(this.#tx)
    const elements = await readListElements(this.#tx, stage.id, stage.fanned, limit)
    const tasks = elements.map(element => ({ id: newId(), type: stage.plan.task!, payload: JSON.stringify(element) }))
    const batch = { stageId: stage.id, state: 'queued' as const, settings: stage.plan.settings, tasks }
    await insertStageTasks(this.#tx, job, [batch], 'engine')
    const fanned = stage.fanned + elements.length
    this.#book.setStage(stage, { fanned, unfanned: stage.unfanned - elements.length })
    return { last: null, seen: elements.length }
  }

  async #callOff(stages: readonly StageRow[], limit: number | null): Promise<Batch> {
    const tasks = await tasksAfter(this.#tx, stages, limit)
    const open = tasks.flatMap(({ id, isEnded }) => (isEnded ? [] : [id]))
    const byId = new Map(stages.map(stage => [stage.id, stage]))
    const rulings = (await lockTasks(this.#tx, open)).flatMap((task): TaskUpdate[] => {
      const { endsHard, endsCause } = byId.get(task.stageId!)!
      const verdict = cancel(task, endsHard ? 'hard' : 'soft', endsCause ?? undefined)
      return verdict.ok ? [{ task, steps: verdict.steps, patch: verdict.patch }] : []
    })
    await writeTaskUpdates(this.#tx, rulings, this.#actor)
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

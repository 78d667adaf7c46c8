/**
 * A locked job with its stages, as they are and as they are about to be. Moves are noted here, seen by whoever looks
 * next, and written down together.
 */
import { canDecide } from '../../kernel/advance.ts'
import { type JobState, jobLifecycle } from '../../kernel/job.ts'
import { isFinal } from '../../kernel/lifecycle.ts'
import { Problem } from '../../kernel/problem.ts'
import type { StageState } from '../../kernel/stage.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { type JobRow, lockFreeJobs, lockJob, type StageRow, type Tally, takeTallies } from '../../store/jobs/jobs.ts'
import {
  type Change,
  type Release,
  type Step,
  type Writing,
  type Written,
  writeJobs,
} from '../../store/jobs/write-jobs.ts'
import { keepOutline, type Outline, outlineOf } from './job-outline.ts'
import type { JobPatch, JobToDrive, Mutable, StagePatch } from './job-patch.ts'
import { LaneBook } from './locked-job-lanes.ts'

interface Noted {
  steps: Step[]
  opensRound: boolean
  columns: Record<string, unknown>
}

/** To ask before each act whether these stages are enough would take longer than to read all. */
const mostInPart = 100

export class JobBook {
  readonly job: Mutable<JobRow>
  readonly stages: Mutable<StageRow>[] = []
  /** Stages that something was done to since they were last asked for. */
  #changed = new Set<StageRow>()
  readonly #lanes: LaneBook
  /** Queues in which there is new work. */
  readonly told = new Set<string>()
  /** The inputs of a stage are to be found. */
  lists = false
  /** Stages whose conditions were too costly for this transaction. They wait for a turn. */
  readonly postponed = new Set<StageRow>()
  readonly #actor: string
  readonly #noted = new Map<JobRow | StageRow, Noted>()
  #releases: Release[] = []
  /** Of a long job that is read in part: what there is besides. */
  #outline: Outline | undefined

  private constructor(job: JobRow, actor: string, outline?: Outline) {
    this.job = { ...job }
    this.#lanes = new LaneBook(this.job)
    this.#actor = actor
    this.#outline = outline
  }

  static async open(tx: Sql, jobId: string, actor: string): Promise<JobBook> {
    const job = await lockJob(tx, jobId)
    // One that has ended and is not seen is being removed, batch by batch: nobody brings it back.
    if (job === undefined || (!job.visible && isFinal(jobLifecycle, job.state))) {
      throw new Problem('JOB_NOT_FOUND', { id: jobId })
    }
    const book = new JobBook(job, actor)
    await book.#readWhole(tx)
    return book
  }

  /** Of several jobs those that nobody holds; a long one is read only as far as these stages concern it. */
  static async openFree(tx: Sql, asks: readonly JobToDrive[], actor: string): Promise<JobBook[]> {
    const jobs = await lockFreeJobs(
      tx,
      asks.map(({ jobId }) => jobId),
    )
    const open = (job: JobRow) => new JobBook(job, actor, job.hasErrand ? undefined : outlineOf(job.id))
    const books = new Map(jobs.map(job => [job.id, open(job)]))
    const stageIds = asks.flatMap(({ jobId, stageIds }) => {
      const book = books.get(jobId)
      return book === undefined ? [] : (book.#outline?.near(stageIds) ?? [])
    })
    const whole = jobs.flatMap(({ id }) => (books.get(id)!.#outline === undefined ? [id] : []))
    const rows = await takeTallies(tx, { jobIds: [...books.keys()], whole, stageIds })
    const wanted = new Set(stageIds)
    const byJob = new Map(jobs.map(({ id }) => [id, [] as typeof rows]))
    for (const row of rows) byJob.get(row.jobId)!.push(row)
    for (const [id, book] of books) {
      const mine = byJob.get(id)!
      // Stages are only ever added, behind the last: if that is the one that is known, so are all.
      const isKnown = book.#outline === undefined || mine.at(-1)?.id === book.#outline.lastId
      book.#take(mine.filter(row => book.#outline === undefined || wanted.has(row.id) || row.tally !== null))
      if (book.#outline === undefined) keepOutline(id, book.stages)
      else if (!isKnown) await book.#readWhole(tx)
    }
    return [...books.values()]
  }

  /** Reads what is missing of a job that was read in part, if what comes next depends on it. */
  async readRest(tx: Sql, what: 'if needed' | 'all'): Promise<void> {
    if (this.#outline === undefined) return
    const isLarge = this.stages.length > mostInPart
    if (what === 'all' || isLarge || !canDecide(this.job, this.stages, this.#outline)) await this.#readWhole(tx)
  }

  async #readWhole(tx: Sql): Promise<void> {
    const { id } = this.job
    this.#take(await this.#tallies(tx, [id]))
    this.#outline = undefined
    keepOutline(id, this.stages)
  }

  /** Counts again, after something was done to tasks. */
  async recount(tx: Sql): Promise<void> {
    this.#take((await this.#tallies(tx, [])).filter(({ tally }) => tally !== null))
  }

  /** What was released must be off the counts before anything is added to them. */
  async #tallies(tx: Sql, whole: readonly string[]) {
    if (this.#releases.length > 0) await this.write(tx)
    return takeTallies(tx, { jobIds: [this.job.id], whole, stageIds: [] })
  }

  #take(rows: readonly (StageRow & { tally: Tally | null })[]): void {
    const known = new Map(this.stages.map(stage => [stage.id, stage]))
    for (const { tally, ...row } of rows) {
      const stage = known.get(row.id) ?? row
      if (stage === row) {
        this.stages.push(row)
        this.#lanes.know(row)
      }
      if (tally !== null) this.#add(stage, tally)
    }
    this.stages.sort((a, b) => a.ordinal - b.ordinal)
  }

  #add(stage: StageRow, tally: Tally): void {
    const skipped = stage.skipped + tally.skipped
    const good = stage.good + tally.good
    this.setStage(stage, {
      total: stage.total + tally.total,
      good,
      bad: stage.bad + tally.bad,
      partial: stage.partial + tally.partial,
      skipped,
      undoable: good - skipped,
      begun: stage.begun || tally.begun > 0,
      blocked: stage.blocked + tally.blocked,
    })
    this.setJob({ progressAt: this.job.now, begun: this.job.begun || tally.begun > 0 })
  }

  /** Adds the number of blocked tasks that were passed over. */
  addSkipped(stage: StageRow, tasks: number): void {
    this.#add(stage, { total: 0, good: tasks, bad: 0, partial: 0, skipped: tasks, begun: 0, blocked: -tasks })
  }

  moveStage(stage: StageRow, step: Step & { to: StageState }, patch: StagePatch = {}): void {
    this.#note(stage).steps.push({ type: `stage.${step.to}`, actor: this.#actor, ...step })
    this.setStage(stage, { ...patch, state: step.to })
  }

  /** The next round of an ended stage. */
  reviveStage(stage: StageRow, step: Step & { to: StageState }, patch: StagePatch): void {
    this.#note(stage).opensRound = true
    this.moveStage(stage, step, patch)
  }

  /** Decides how a stage ends. What it was doing to its tasks is over; what has not become a task will not. */
  intendStage(stage: StageRow, endsAs: NonNullable<StageRow['endsAs']>, cause: string, patch: StagePatch = {}): void {
    const total = stage.endsAs === null ? stage.total - stage.unfanned : stage.total
    // An error from before anything was decided only told why it did not go on; that of its condition ends it.
    const isMereTrouble = stage.endsAs === null && stage.opening !== 'error'
    const afresh = { calledOff: false, errand: null, errandAt: null, ...(isMereTrouble && { error: null }) }
    this.setStage(stage, { ...afresh, ...patch, total, endsAs, endsCause: cause })
  }

  /** Leaves the condition of a stage to a turn of the job. */
  postpone(stage: StageRow): void {
    this.putOff(stage)
    this.postponed.add(stage)
  }

  setStage(stage: StageRow, patch: StagePatch): void {
    const { columns } = this.#note(stage)
    const { state: _, given, ...rest } = patch
    for (const [name, value] of Object.entries(rest)) columns[snake(name)] = value
    if (given !== undefined) columns.approvals = given
    Object.assign(stage, patch, given === undefined ? {} : { approvals: given.length })
    if ('errand' in patch) Object.assign(stage, { busy: patch.errand !== null })
    this.touch(stage)
    this.#changed.add(stage)
  }

  /** Its lane may have to open or close. */
  touch(stage: StageRow): void {
    this.#lanes.touch(stage)
  }

  /** Leaves what is to be done to a stage to the next transaction, or to the end of this one. */
  putOff(stage: StageRow): void {
    Object.assign(stage, { busy: true })
    this.#changed.add(stage)
  }

  /** Stages that something was done to since this was last asked. */
  takeChanged(): ReadonlySet<StageRow> {
    const changed = this.#changed
    this.#changed = new Set()
    return changed
  }

  /** Lets its blocked tasks be claimed, up to this one or all; how many they were is known when it is written. */
  release(stage: StageRow, upTo: string | null): void {
    this.setStage(stage, {})
    this.setJob({ progressAt: this.job.now })
    this.#releases.push({ stageId: stage.id, after: stage.errandAt, upTo })
    if (upTo === null) Object.assign(stage, { blocked: 0 })
  }

  moveJob(step: Step & { to: JobState }, patch: JobPatch = {}): void {
    this.#note(this.job).steps.push({ type: `job.${step.to}`, actor: this.#actor, ...step })
    this.setJob({ ...patch, state: step.to })
    for (const stage of this.stages) this.touch(stage)
  }

  reviveJob(step: Step & { to: JobState }, patch: JobPatch): void {
    this.#note(this.job).opensRound = true
    this.moveJob(step, { ...patch, conditionSteps: 0 })
    this.job.round += 1
  }

  setJob(patch: JobPatch): void {
    const { columns } = this.#note(this.job)
    const { state: _, ...rest } = patch
    for (const [name, value] of Object.entries(rest)) columns[snake(name)] = value
    Object.assign(this.job, patch)
    if ('endsAs' in patch) for (const stage of this.stages) this.touch(stage)
  }

  /**
   * Writes down what has been noted so far, and closes lanes: whoever comes to tasks after this has the lanes first, as a
   * claim does (store/flow/lanes.ts). Lanes that are to open are left to the end.
   */
  async write(tx: Sql): Promise<void> {
    const { lanes, ...writing } = this.#writing()
    const closing = lanes.filter(({ open }) => !open)
    if (this.#noted.size + closing.length === 0) return
    this.#isWritten(await writeJobs(tx, { ...writing, lanes: closing, ended: [] }))
    this.#lanes.wereClosed(closing)
  }

  /** Closes lanes that are to close, before tasks are locked, and writes down what has been noted with them. */
  async closeLanes(tx: Sql): Promise<void> {
    if (this.#lanes.mustClose()) await this.write(tx)
  }

  /** Writes down all that is noted in these books; answers with the queues in which there is new work. */
  static async close(tx: Sql, books: readonly JobBook[]): Promise<string[]> {
    const parts = books.filter(book => book.#noted.size > 0 || book.#lanes.isTouched).map(book => book.#writing())
    if (parts.length === 0) return []
    const written = await writeJobs(tx, {
      stages: parts.flatMap(({ stages }) => stages),
      jobs: parts.flatMap(({ jobs }) => jobs),
      releases: parts.flatMap(({ releases }) => releases),
      lanes: parts.flatMap(({ lanes }) => lanes),
      ended: parts.flatMap(({ ended }) => ended),
    })
    for (const book of books) book.#isWritten(written)
    return [...new Set([...written.queues, ...books.flatMap(({ told }) => [...told])])]
  }

  #writing(): Writing {
    const changes = (of: 'job' | 'stage'): Change[] =>
      [...this.#noted].flatMap(([row, noted]) =>
        (row === this.job) === (of === 'job') ? [{ id: row.id, seq: row.seq, ...noted }] : [],
      )
    return { stages: changes('stage'), jobs: changes('job'), releases: this.#releases, ...this.#lanes.writing() }
  }

  #isWritten({ blocked }: Written): void {
    for (const [row, { steps }] of this.#noted) {
      Object.assign(row, { seq: row.seq + steps.length })
      if (row === this.job) continue
      Object.assign(row, { blocked: blocked.get(row.id) })
      this.#changed.add(row as StageRow)
    }
    this.#noted.clear()
    this.#releases = []
  }

  #note(row: JobRow | StageRow): Noted {
    const noted = this.#noted.get(row) ?? { steps: [], opensRound: false, columns: {} }
    this.#noted.set(row, noted)
    return noted
  }
}

const snake = (name: string) => name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)

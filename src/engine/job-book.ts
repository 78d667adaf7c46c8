/**
 * A locked job with its stages, as they are and as they are about to be. Moves are noted here, seen by whoever looks
 * next, and written down together.
 */
import type { JobState } from '../kernel/job.ts'
import { Problem } from '../kernel/problem.ts'
import type { StageState } from '../kernel/stage.ts'
import {
  addUp,
  type Change,
  type JobRow,
  lockJob,
  readStages,
  type StageRow,
  type Step,
  writeChanges,
} from '../store/jobs.ts'
import type { Sql } from '../store/sql.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

interface Noted {
  seq: number
  steps: Step[]
  opensRound: boolean
  columns: Record<string, unknown>
}

export type StagePatch = Partial<Mutable<StageRow>> & {
  fan?: unknown
  error?: unknown
  gateUntil?: string | null
  metadata?: unknown
}
export type JobPatch = Partial<Mutable<Omit<JobRow, 'metadata'>>> & { deadlineAt?: string | null; metadata?: unknown }

export class JobBook {
  readonly job: Mutable<JobRow>
  readonly stages: Mutable<StageRow>[]
  /** Stages whose lanes may have to open or close. */
  readonly touched = new Set<StageRow>()
  /** Queues in which there is new work. */
  readonly told = new Set<string>()
  readonly #actor: string
  readonly #noted = new Map<JobRow | StageRow, Noted>()

  private constructor(job: JobRow, stages: StageRow[], actor: string) {
    this.job = job
    this.stages = stages
    this.#actor = actor
  }

  static async open(tx: Sql, jobId: string, actor: string): Promise<JobBook> {
    const job = await lockJob(tx, jobId)
    if (job === undefined) throw new Problem('JOB_NOT_FOUND', { id: jobId })
    const counts = await addUp(tx, jobId)
    const begun = job.begun || counts.some(({ justBegun }) => justBegun)
    return new JobBook({ ...job, begun }, await readStages(tx, jobId), actor)
  }

  moveStage(stage: StageRow, step: Step & { to: StageState }, patch: StagePatch = {}): void {
    this.#note(stage).steps.push(step)
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
    const afresh = { calledOff: false, errand: null, errandAt: null }
    this.setStage(stage, { ...afresh, ...patch, total, endsAs, endsCause: cause })
  }

  setStage(stage: StageRow, patch: StagePatch): void {
    const { columns } = this.#note(stage)
    const { state: _, given, ...rest } = patch
    for (const [name, value] of Object.entries(rest)) columns[snake(name)] = value
    if (given !== undefined) columns.approvals = given
    Object.assign(stage, patch, given === undefined ? {} : { approvals: given.length })
    if ('errand' in patch) Object.assign(stage, { busy: patch.errand !== null })
    this.touched.add(stage)
  }

  moveJob(step: Step & { to: JobState }, patch: JobPatch = {}): void {
    this.#note(this.job).steps.push(step)
    this.setJob({ ...patch, state: step.to })
    for (const stage of this.stages) this.touched.add(stage)
  }

  reviveJob(step: Step & { to: JobState }, patch: JobPatch): void {
    this.#note(this.job).opensRound = true
    this.moveJob(step, patch)
    this.job.round += 1
  }

  setJob(patch: JobPatch): void {
    const { columns } = this.#note(this.job)
    const { state: _, ...rest } = patch
    for (const [name, value] of Object.entries(rest)) columns[snake(name)] = value
    Object.assign(this.job, patch)
  }

  async write(tx: Sql): Promise<void> {
    const changes = (of: 'job' | 'stage'): Change[] =>
      [...this.#noted].flatMap(([row, { seq, steps, opensRound, columns }]) =>
        (row === this.job) === (of === 'job') ? [{ id: row.id, seq, steps, opensRound, columns }] : [],
      )
    await writeChanges(tx, 'stage', changes('stage'), this.#actor)
    await writeChanges(tx, 'job', changes('job'), this.#actor)
    for (const [row, { steps }] of this.#noted) Object.assign(row, { seq: row.seq + steps.length })
    this.#noted.clear()
  }

  /** Counts again, after something was done to tasks. */
  async recount(tx: Sql): Promise<void> {
    await this.write(tx)
    for (const { justBegun, ...counts } of await addUp(tx, this.job.id)) {
      Object.assign(this.stages.find(({ id }) => id === counts.id)!, counts)
      this.job.begun ||= justBegun
    }
  }

  #note(row: JobRow | StageRow): Noted {
    const noted = this.#noted.get(row) ?? { seq: row.seq, steps: [], opensRound: false, columns: {} }
    this.#noted.set(row, noted)
    return noted
  }
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}

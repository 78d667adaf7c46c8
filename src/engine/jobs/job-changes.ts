/** Changes to a locked job, its stages and their lanes that have not been written to the store yet. */
import { isLaneOpen } from '../../kernel/advance.ts'
import { isFinal } from '../../kernel/lifecycle.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import type { JobRow, StageRow } from '../../store/jobs/jobs.ts'
import type { Change, Release, Step, Writing } from '../../store/jobs/write-jobs.ts'

export type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export type StagePatch = Partial<Mutable<StageRow>> & {
  fan?: unknown
  error?: unknown
  gateUntil?: string | null
  metadata?: unknown
}
export type JobPatch = Partial<Mutable<Omit<JobRow, 'metadata'>>> & {
  deadlineAt?: string | null
  metadata?: unknown
  progressAt?: Date
}

interface RowChange {
  readonly from: JobRow['state'] | StageRow['state']
  steps: Step[]
  opensRound: boolean
  columns: Record<string, unknown>
}

/** Collects changes to a job row and to its stage rows until they are written together. */
export class JobChanges {
  readonly #job: JobRow
  readonly #rows = new Map<JobRow | StageRow, RowChange>()
  #releases: Release[] = []

  constructor(job: JobRow) {
    this.#job = job
  }

  get isEmpty(): boolean {
    return this.#rows.size === 0
  }

  get hasReleases(): boolean {
    return this.#releases.length > 0
  }

  setColumns(row: JobRow | StageRow, values: Readonly<Record<string, unknown>>): void {
    const { columns } = this.of(row)
    for (const [name, value] of Object.entries(values)) columns[snakeCase(name)] = value
  }

  addRelease(release: Release): void {
    this.#releases.push(release)
  }

  toWrite(): Pick<Writing, 'stages' | 'jobs' | 'releases'> {
    const changes = [...this.#rows].map(([row, change]) => ({ row, change: { id: row.id, seq: row.seq, ...change } }))
    const isOfJob = ({ row }: { row: JobRow | StageRow }) => row === this.#job
    const changeOf = ({ change }: { change: Change }) => change
    return {
      stages: changes.filter(each => !isOfJob(each)).map(changeOf),
      jobs: changes.filter(isOfJob).map(changeOf),
      releases: this.#releases,
    }
  }

  /** Forgets what was written and moves each row to its new `seq`. Returns the stages that were written. */
  takeWritten(): StageRow[] {
    const written = [...this.#rows]
    for (const [row, { steps }] of written) Object.assign(row, { seq: row.seq + steps.length })
    this.#rows.clear()
    this.#releases = []
    return written.flatMap(([row]) => (row === this.#job ? [] : [row as StageRow]))
  }

  /** The changes to a row so far. */
  of(row: JobRow | StageRow): RowChange {
    const change = this.#rows.get(row) ?? { from: row.state, steps: [], opensRound: false, columns: {} }
    this.#rows.set(row, change)
    return change
  }
}

const snakeCase = (name: string) => name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)

export class LaneChanges {
  readonly #job: JobRow
  readonly #touched = new Set<StageRow>()
  /** Stages touched since the last call of `takeMustClose`. */
  readonly #unchecked = new Set<StageRow>()
  /** Whether lanes are open in the store, as far as known. */
  readonly #isOpen = new Map<number, boolean>()

  constructor(job: JobRow) {
    this.#job = job
  }

  /** Adds a stage as it was read. The transaction that moved it out of an open state has closed its lane. */
  addStage({ laneId, state }: StageRow): void {
    if (laneId !== null && state !== 'pending' && state !== 'running') this.#isOpen.set(laneId, false)
  }

  /** Notes that the stage's lane may have to open or close. */
  touch(stage: StageRow): void {
    this.#touched.add(stage)
    this.#unchecked.add(stage)
  }

  get isTouched(): boolean {
    return this.#touched.size > 0
  }

  /** Returns whether a lane has to close before tasks are locked, and resets the answer. */
  takeMustClose(): boolean {
    const must = [...this.#unchecked].some(stage => this.#changes(stage) && !isLaneOpen(this.#job, stage))
    this.#unchecked.clear()
    return must
  }

  toWrite(): Pick<Writing, 'lanes' | 'ended'> {
    const touched = [...this.#touched]
    return {
      lanes: touched.flatMap(stage =>
        this.#changes(stage) ? [{ id: stage.laneId!, open: isLaneOpen(this.#job, stage) }] : [],
      ),
      ended: touched.flatMap(({ laneId, state }) =>
        laneId !== null && isFinal(stageLifecycle, state) ? [laneId] : [],
      ),
    }
  }

  markClosed(lanes: Writing['lanes']): void {
    for (const { id } of lanes) this.#isOpen.set(id, false)
  }

  #changes(stage: StageRow): boolean {
    return stage.laneId !== null && this.#isOpen.get(stage.laneId) !== isLaneOpen(this.#job, stage)
  }
}

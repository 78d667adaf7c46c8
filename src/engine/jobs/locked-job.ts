/**
 * A job and its stages, locked in a transaction. Changes are visible in the rows at once, and are written to the store
 * together.
 */

import { type JobState, jobLifecycle } from '../../kernel/job.ts'
import { isFinal } from '../../kernel/lifecycle.ts'
import { canDecide } from '../../kernel/next-acts.ts'
import { Problem } from '../../kernel/problem.ts'
import type { StageState } from '../../kernel/stage.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { type JobRow, lockFreeJobs, lockJob, type StageRow, type Tally, takeTallies } from '../../store/jobs/jobs.ts'
import { type Step, type Writing, type Written, writeJobs } from '../../store/jobs/write-jobs.ts'
import { cacheGraph, type DependencyGraph, type JobToAdvance, loadStages } from './dependency-graph.ts'
import { JobChanges, type JobPatch, LaneChanges, type Mutable, type StagePatch } from './job-changes.ts'

/**
 * Beyond this number of stages, checking before each action whether enough stages are loaded takes longer than loading
 * all.
 */
const maxPartialStages = 100

export class LockedJob {
  readonly job: Mutable<JobRow>
  readonly stages: Mutable<StageRow>[] = []
  /** Stages changed since the last call of `takeChanged`. */
  #changed = new Set<StageRow>()
  readonly #lanes: LaneChanges
  /** Queues with new work. */
  readonly queuesToWake = new Set<string>()
  /** A stage's inputs are to be listed. */
  startsListing = false
  /** Stages whose conditions are too costly for this transaction. They wait for a turn. */
  readonly postponed = new Set<StageRow>()
  readonly #actor: string
  readonly #changes: JobChanges
  /** Set while a long job is loaded only in part. */
  #graph: DependencyGraph | undefined

  private constructor(job: JobRow, actor: string, graph?: DependencyGraph) {
    this.job = { ...job }
    this.#changes = new JobChanges(this.job)
    this.#lanes = new LaneChanges(this.job)
    this.#actor = actor
    this.#graph = graph
  }

  static async lock(tx: Sql, jobId: string, actor: string): Promise<LockedJob> {
    const job = await lockJob(tx, jobId)
    // A finished job that is not visible is being deleted in batches and must not come back.
    if (job === undefined || (!job.visible && isFinal(jobLifecycle, job.state))) {
      throw new Problem('JOB_NOT_FOUND', { id: jobId })
    }
    const locked = new LockedJob(job, actor)
    await locked.#readAll(tx)
    return locked
  }

  /**
   * Locks those of several jobs that no other transaction holds. A long job is loaded only as far as the given stages
   * concern it.
   */
  static async lockAvailable(tx: Sql, jobsToAdvance: readonly JobToAdvance[], actor: string): Promise<LockedJob[]> {
    const jobs = await lockFreeJobs(
      tx,
      jobsToAdvance.map(({ jobId }) => jobId),
    )
    const loaded = await loadStages(tx, jobs, jobsToAdvance)
    const lockedJobs = jobs.map(job => new LockedJob(job, actor, loaded.get(job.id)!.graph))
    for (const locked of lockedJobs) {
      const { rows, graph, isStale } = loaded.get(locked.job.id)!
      locked.#addRows(rows)
      if (graph === undefined) cacheGraph(locked.job.id, locked.stages)
      else if (isStale) await locked.#readAll(tx)
    }
    return lockedJobs
  }

  /** Loads the missing stages of a partly loaded job if the next action depends on them. */
  async readMissing(tx: Sql, what: 'if needed' | 'all'): Promise<void> {
    if (this.#graph === undefined) return
    const isLarge = this.stages.length > maxPartialStages
    if (what === 'all' || isLarge || !canDecide(this.job, this.stages, this.#graph)) await this.#readAll(tx)
  }

  async #readAll(tx: Sql): Promise<void> {
    const { id } = this.job
    this.#addRows(await this.#takeTallies(tx, [id]))
    this.#graph = undefined
    cacheGraph(id, this.stages)
  }

  /** Updates the counts after tasks have changed. */
  async recount(tx: Sql): Promise<void> {
    this.#addRows((await this.#takeTallies(tx, [])).filter(({ tally }) => tally !== null))
  }

  /** Released tasks must be subtracted from the counts before tallies are added. */
  async #takeTallies(tx: Sql, whole: readonly string[]) {
    if (this.#changes.hasReleases) await this.write(tx)
    return takeTallies(tx, { jobIds: [this.job.id], whole, stageIds: [] })
  }

  #addRows(rows: readonly (StageRow & { tally: Tally | null })[]): void {
    const known = new Map(this.stages.map(stage => [stage.id, stage]))
    for (const { tally, ...row } of rows) {
      const stage = known.get(row.id) ?? row
      if (stage === row) {
        this.stages.push(row)
        this.#lanes.addStage(row)
      }
      if (tally !== null) this.#addTally(stage, tally)
    }
    this.stages.sort((a, b) => a.ordinal - b.ordinal)
  }

  #addTally(stage: StageRow, tally: Tally): void {
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

  /** Counts blocked tasks that were skipped. */
  addSkipped(stage: StageRow, tasks: number): void {
    this.#addTally(stage, { total: 0, good: tasks, bad: 0, partial: 0, skipped: tasks, begun: 0, blocked: -tasks })
  }

  moveStage(stage: StageRow, step: Step & { to: StageState }, patch: StagePatch = {}): void {
    this.#changes.of(stage).steps.push({ type: `stage.${step.to}`, actor: this.#actor, ...step })
    this.setStage(stage, { ...patch, state: step.to })
  }

  /** Opens the next round of an ended stage. */
  reviveStage(stage: StageRow, step: Step & { to: StageState }, patch: StagePatch): void {
    this.#changes.of(stage).opensRound = true
    this.moveStage(stage, step, patch)
  }

  /**
   * Decides how a stage will end. Pending work on its tasks is dropped, and list elements without a task never become
   * tasks.
   */
  decideStageEnd(
    stage: StageRow,
    endsAs: NonNullable<StageRow['endsAs']>,
    cause: string,
    patch: StagePatch = {},
  ): void {
    const total = stage.endsAs === null ? stage.total - stage.unfanned : stage.total
    // Before an end is decided, an error only explains why the stage did not proceed, so it is cleared. An error of the
    // stage's condition stays: it is the cause of the end.
    const isOnlyNotice = stage.endsAs === null && stage.opening !== 'error'
    const clearedWork = { calledOff: false, errand: null, errandAt: null, ...(isOnlyNotice && { error: null }) }
    this.setStage(stage, { ...clearedWork, ...patch, total, endsAs, endsCause: cause })
  }

  /** Leaves the stage's condition to a turn of the job. */
  postponeConditions(stage: StageRow): void {
    this.defer(stage)
    this.postponed.add(stage)
  }

  setStage(stage: StageRow, patch: StagePatch): void {
    const { state: _, given, ...columns } = patch
    this.#changes.setColumns(stage, { ...columns, ...(given !== undefined && { approvals: given }) })
    Object.assign(stage, patch, given === undefined ? {} : { approvals: given.length })
    if ('errand' in patch) Object.assign(stage, { busy: patch.errand !== null })
    this.touchLane(stage)
    this.#changed.add(stage)
  }

  /** Its lane may have to open or close. */
  touchLane(stage: StageRow): void {
    this.#lanes.touch(stage)
  }

  /** Leaves work on a stage to the next transaction, or to the end of this one. */
  defer(stage: StageRow): void {
    Object.assign(stage, { busy: true })
    this.#changed.add(stage)
  }

  /** Returns the stages changed since the last call. */
  takeChanged(): ReadonlySet<StageRow> {
    const changed = this.#changed
    this.#changed = new Set()
    return changed
  }

  /**
   * Makes the stage's blocked tasks claimable, up to the task `upTo` or all of them. Their number is known when the
   * change is written.
   */
  releaseTasks(stage: StageRow, upTo: string | null): void {
    this.setStage(stage, {})
    this.setJob({ progressAt: this.job.now })
    this.#changes.addRelease({ stageId: stage.id, after: stage.errandAt, upTo })
    if (upTo === null) Object.assign(stage, { blocked: 0 })
  }

  moveJob(step: Step & { to: JobState }, patch: JobPatch = {}): void {
    this.#changes.of(this.job).steps.push({ type: `job.${step.to}`, actor: this.#actor, ...step })
    this.setJob({ ...patch, state: step.to })
    for (const stage of this.stages) this.touchLane(stage)
  }

  reviveJob(step: Step & { to: JobState }, patch: JobPatch): void {
    this.#changes.of(this.job).opensRound = true
    this.moveJob(step, { ...patch, conditionSteps: 0 })
    this.job.round += 1
  }

  setJob(patch: JobPatch): void {
    const { state: _, ...columns } = patch
    this.#changes.setColumns(this.job, columns)
    Object.assign(this.job, patch)
    if ('endsAs' in patch) for (const stage of this.stages) this.touchLane(stage)
  }

  /**
   * Writes all changes so far and closes lanes. Like a claim, a transaction that locks tasks after this has locked the
   * lanes first (store/flow/lanes.ts). Lanes are opened by the final write.
   */
  async write(tx: Sql): Promise<void> {
    const { lanes, ...writing } = this.#toWrite()
    const closing = lanes.filter(({ open }) => !open)
    if (this.#changes.isEmpty && closing.length === 0) return
    this.#afterWrite(await writeJobs(tx, { ...writing, lanes: closing, ended: [] }))
    this.#lanes.markClosed(closing)
  }

  /** Before tasks are locked: closes lanes that have to close, together with all changes so far. */
  async closeLanes(tx: Sql): Promise<void> {
    if (this.#lanes.takeMustClose()) await this.write(tx)
  }

  /** Writes all pending changes of these jobs. Returns the queues with new work. */
  static async writeAll(tx: Sql, lockedJobs: readonly LockedJob[]): Promise<string[]> {
    const parts = lockedJobs
      .filter(locked => !locked.#changes.isEmpty || locked.#lanes.isTouched)
      .map(locked => locked.#toWrite())
    if (parts.length === 0) return []
    const written = await writeJobs(tx, {
      stages: parts.flatMap(({ stages }) => stages),
      jobs: parts.flatMap(({ jobs }) => jobs),
      releases: parts.flatMap(({ releases }) => releases),
      lanes: parts.flatMap(({ lanes }) => lanes),
      ended: parts.flatMap(({ ended }) => ended),
    })
    for (const locked of lockedJobs) locked.#afterWrite(written)
    return [...new Set([...written.queues, ...lockedJobs.flatMap(({ queuesToWake }) => [...queuesToWake])])]
  }

  #toWrite(): Writing {
    return { ...this.#changes.toWrite(), ...this.#lanes.toWrite() }
  }

  #afterWrite({ blocked }: Written): void {
    for (const stage of this.#changes.takeWritten()) {
      Object.assign(stage, { blocked: blocked.get(stage.id) })
      this.#changed.add(stage)
    }
  }
}

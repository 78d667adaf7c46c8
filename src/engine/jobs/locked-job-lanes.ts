/** The lanes of a locked job: which are open, and which have to open or close for what has been done to its stages. */
import { isFinal } from '../../kernel/lifecycle.ts'
import { type StageState, stageLifecycle } from '../../kernel/stage.ts'
import type { JobRow, StageRow } from '../../store/jobs/jobs.ts'
import type { Writing } from '../../store/jobs/write-jobs.ts'

const isOpenState = (state: StageState) => state === 'pending' || state === 'running'

export class LaneBook {
  readonly #job: JobRow
  readonly #touched = new Set<StageRow>()
  /** Stages that were touched since somebody asked whether a lane has to close. */
  readonly #unchecked = new Set<StageRow>()
  /** Whether lanes are open in the store, as far as that is known. */
  readonly #isOpen = new Map<number, boolean>()

  constructor(job: JobRow) {
    this.#job = job
  }

  /** A stage as it was read. Whoever moved it out of an open state has closed its lane. */
  know({ laneId, state }: StageRow): void {
    if (laneId !== null && !isOpenState(state)) this.#isOpen.set(laneId, false)
  }

  /** Its lane may have to open or close. */
  touch(stage: StageRow): void {
    this.#touched.add(stage)
    this.#unchecked.add(stage)
  }

  get isTouched(): boolean {
    return this.#touched.size > 0
  }

  /** Whether a lane has to close before tasks are locked. Answers once for what was touched before. */
  mustClose(): boolean {
    const must = [...this.#unchecked].some(stage => this.#changes(stage) && !this.#shouldOpen(stage))
    this.#unchecked.clear()
    return must
  }

  writing(): Pick<Writing, 'lanes' | 'ended'> {
    const touched = [...this.#touched]
    return {
      lanes: touched.flatMap(stage =>
        this.#changes(stage) ? [{ id: stage.laneId!, open: this.#shouldOpen(stage) }] : [],
      ),
      ended: touched.flatMap(({ laneId, state }) =>
        laneId !== null && isFinal(stageLifecycle, state) ? [laneId] : [],
      ),
    }
  }

  wereClosed(lanes: Writing['lanes']): void {
    for (const { id } of lanes) this.#isOpen.set(id, false)
  }

  #changes(stage: StageRow): boolean {
    return stage.laneId !== null && this.#isOpen.get(stage.laneId) !== this.#shouldOpen(stage)
  }

  /**
   * A lane is open while its stage is, and its job is neither paused nor stopping. The lanes of undo stages are open while
   * the job compensates. Once an end is decided, no more tasks are handed out.
   */
  #shouldOpen({ state, kind, endsAs }: StageRow): boolean {
    const job = this.#job
    const runs =
      kind === 'undo' ? job.state === 'compensating' : ['pending', 'running'].includes(job.state) && job.endsAs === null
    return runs && job.visible && endsAs === null && isOpenState(state)
  }
}

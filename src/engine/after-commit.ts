/**
 * Collects what must happen once a transaction has committed. Nothing here is needed for correctness: if the process dies
 * before it is done, polling workers and the babysitter find the same work a few seconds later.
 */
export class AfterCommit {
  /** Queues with new work, whose waiting workers are woken. */
  readonly queues = new Set<string>()
  /** Stages whose counts have changed, so that their jobs may have something to do. */
  readonly stages = new Set<string>()
  /** Jobs that have more to do to their tasks than fits into one transaction. */
  readonly unfinishedJobs = new Set<string>()
  /** Jobs that wait for a turn to evaluate their conditions. */
  readonly postponedJobs = new Set<string>()
  /** There are inputs to list or files to move. */
  hasFiles = false

  wake(queues: Iterable<string>): void {
    for (const queue of queues) this.queues.add(queue)
  }

  rollUp(stageIds: Iterable<string>): void {
    for (const id of stageIds) this.stages.add(id)
  }

  add(other: AfterCommit): void {
    this.wake(other.queues)
    this.rollUp(other.stages)
    for (const id of other.unfinishedJobs) this.unfinishedJobs.add(id)
    for (const id of other.postponedJobs) this.postponedJobs.add(id)
    if (other.hasFiles) this.hasFiles = true
  }
}

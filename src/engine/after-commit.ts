/**
 * Collects the work to do after a transaction commits. Correctness does not depend on it: if the process dies first,
 * polling workers and the babysitter find the same work a few seconds later.
 */
export class AfterCommit {
  /** Queues with new work. Their waiting workers are woken. */
  readonly queues = new Set<string>()
  /** Stages whose counts have changed. Their jobs may have to advance. */
  readonly stages = new Set<string>()
  /** Jobs whose pending work on tasks does not fit into one transaction. */
  readonly unfinishedJobs = new Set<string>()
  /** Jobs that wait for a turn to evaluate their conditions. */
  readonly postponedJobs = new Set<string>()
  /** There are inputs to list or files to promote. */
  hasFiles = false

  addQueues(queues: Iterable<string>): void {
    for (const queue of queues) this.queues.add(queue)
  }

  addStages(stageIds: Iterable<string>): void {
    for (const id of stageIds) this.stages.add(id)
  }

  add(other: AfterCommit): void {
    this.addQueues(other.queues)
    this.addStages(other.stages)
    for (const id of other.unfinishedJobs) this.unfinishedJobs.add(id)
    for (const id of other.postponedJobs) this.postponedJobs.add(id)
    if (other.hasFiles) this.hasFiles = true
  }
}

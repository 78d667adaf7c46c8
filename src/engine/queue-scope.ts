/**
 * A key may be limited to some queues. What it enqueues, claims or reports on must then be in them. The arguments are
 * not validated yet: the engine refuses invalid names of queues.
 */

import { Problem } from '../kernel/problem.ts'
import type { OperationEntry, QueueScope } from '../protocol/operation.ts'
import type { SyncRequest } from '../protocol/tasks/sync.ts'
import type { NewTaskItem } from '../protocol/tasks/tasks.ts'
import type { StageSpec } from '../spec/job-spec.ts'
import { readJob, readStage } from './jobs/read-jobs.ts'
import { demandJob, demandQueues, isForOne, queuesSaid } from './key-queues.ts'
import type { Caller } from './operations.ts'
import { readQueuesOf } from './tasks/read-tasks.ts'

type Context = Caller['context']

/** Finds the queues that the key must include, given the operation's arguments. */
type FindQueues = (
  context: Context,
  args: readonly unknown[],
  allowed: readonly string[],
) => Promise<readonly unknown[]> | readonly unknown[]

const queuesOfJob = async (context: Context, id: string) =>
  (await readJob(context, id)).stages.flatMap(({ queue }) => queue ?? [])

const scopes: Readonly<Record<QueueScope, FindQueues>> = {
  named: (_, [request]) => (request as SyncRequest).queues ?? [],
  async reported(context, [request]) {
    const { queues = [], started = [], beats = [], artifacts = [], settled = [] } = request as SyncRequest
    const ids = [started, beats, artifacts, settled].flatMap(items =>
      Array.isArray(items) ? items.map(item => item?.id) : [],
    )
    return [...queues, ...(await readQueuesOf(context, ids))]
  },
  enqueued: (_, [items]) => (items as NewTaskItem[]).map(item => item?.queue ?? item?.type),
  async added(context, [id, stages], allowed) {
    // Only the engine knows which other stages they need, and refuses what is not a stage.
    demandQueues(allowed, queuesSaid(stages as StageSpec[]))
    demandJob(allowed, await queuesOfJob(context, id as string))
    return []
  },
  task: (context, [id]) => readQueuesOf(context, [id]),
  /**
   * A stage that was deleted is in no queue: nothing can be done to it, and the answer to an idempotency key may be
   * given again. Nobody chooses the id of a stage, so no new stage can take this one in the meantime.
   */
  stage: (context, [id]) =>
    readStage(context, id as string).then(
      ({ queue }) => [queue],
      error => {
        if (error instanceof Problem && error.code === 'STAGE_NOT_FOUND') return []
        throw error
      },
    ),
  job: (context, [id]) => queuesOfJob(context, id as string),
  /** A worker reads the files of earlier stages of its job, so one stage of the job in its queues is enough. */
  async siblings(context, [id], allowed) {
    const { jobId, queue } = await readStage(context, id as string)
    return isForOne(allowed, await queuesOfJob(context, jobId)) ? [] : [queue]
  },
  /** The queue of a type has its name, unless a task says otherwise. */
  type: (_, [type]) => [type],
}

/** Throws if the caller's key is limited to other queues than the operation would touch. */
export async function demandScope({ context, queues }: Caller, operation: OperationEntry, args: readonly unknown[]) {
  if (queues === null || operation.queues === undefined) return
  demandQueues(queues, await scopes[operation.queues](context, args, queues))
}

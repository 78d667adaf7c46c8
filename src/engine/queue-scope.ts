/**
 * The limits of a key: its roles grant permissions, and it may be limited to some queues. What it enqueues, claims or
 * reports on must then be in them. The arguments are not validated yet: the engine refuses invalid names of queues.
 */
import { commandType, permissionQueueOf } from '../kernel/datum.ts'
import type { StagePlan } from '../kernel/plan.ts'
import { Problem } from '../kernel/problem.ts'
import { may, type Permission, type Role, roles } from '../kernel/role.ts'
import type { OperationEntry, QueueScope } from '../protocol/operation.ts'
import type { SyncRequest } from '../protocol/tasks/sync.ts'
import type { NewTaskItem } from '../protocol/tasks/tasks.ts'
import { isObject } from '../schema/check.ts'
import type { StageSpec } from '../spec/job-spec.ts'
import type { Context } from './context.ts'
import { readJob, readStage } from './jobs/read-jobs.ts'
import { readQueuesOf } from './tasks/read-tasks.ts'

/** Throws unless a key with these roles has one of the permissions. */
export function demandPermission(held: readonly Role[], permission: Permission | readonly Permission[]): void {
  const wanted = [permission].flat()
  const suffices = (some: Role | readonly Role[]) => wanted.some(each => may(some, each))
  if (suffices(held)) return
  const able = (Object.keys(roles) as Role[]).filter(suffices)
  throw new Problem('KEY_REFUSED', { role: held.join(', '), lacks: wanted.join(' or '), able })
}

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
    demandQueues(allowed, queuesWritten(stages as StageSpec[]))
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
export async function demandScope(
  { context, queues }: { readonly context: Context; readonly queues: readonly string[] | null },
  operation: OperationEntry,
  args: readonly unknown[],
) {
  if (queues === null || operation.queues === undefined) return
  demandQueues(queues, await scopes[operation.queues](context, args, queues))
}

/** Returns the queues of the tasks of stages, and of the tasks that undo them. */
export function queuesIn(stages: readonly Pick<StagePlan, 'queue' | 'task' | 'compensate'>[]): unknown[] {
  return stages.flatMap(({ queue, task, compensate }) => [queue ?? task, compensate?.queue ?? compensate?.task])
}

/** Like `queuesIn`, for stages that are not validated yet. */
export function queuesWritten(stages: readonly unknown[]): unknown[] {
  const written = stages.filter(isObject) as unknown as StageSpec[]
  return written.flatMap(({ queue, task, run, compensate }) => [
    queue ?? (run === undefined ? task : commandType),
    compensate?.queue ?? compensate?.task,
  ])
}

/**
 * A stage that fails can fail its job. So the key of a caller who adds one must include the queue of an existing stage,
 * if there is any.
 */
export function demandJob(allowed: readonly string[] | null, queues: readonly string[]): void {
  if (allowed === null || queues.length === 0 || isForOne(allowed, queues)) return
  demandQueues(allowed, queues)
}

/** Returns whether the key's queues include one of these. */
function isForOne(allowed: readonly string[], queues: readonly string[]): boolean {
  return queues.some(queue => allowed.includes(permissionQueueOf(queue)))
}

/** Throws unless all named queues are allowed. Values that are not names are refused elsewhere. */
export function demandQueues(allowed: readonly string[] | null, named: readonly unknown[]): void {
  if (allowed === null) return
  const wanted = named.filter(queue => typeof queue === 'string').map(permissionQueueOf)
  const beyond = wanted.filter(queue => !allowed.includes(queue))
  if (beyond.length > 0) throw new Problem('KEY_REFUSED', { queues: [...new Set(beyond)], may: allowed })
}

/**
 * A key may be for some queues only: then what is queued, claimed or reported must be in them. What is named here may
 * be anything yet; what is no name of a queue the engine refuses.
 */
import type { Pawl } from '../engine/engine.ts'
import { demandJob, demandQueues, isForOne, queuesSaid } from '../engine/key-queues.ts'
import { Problem } from '../kernel/problem.ts'
import type { Operation } from '../protocol/routes.ts'
import type { SyncRequest } from '../protocol/tasks/sync.ts'
import type { NewTaskItem } from '../protocol/tasks/tasks.ts'
import type { StageSpec } from '../spec/job-spec.ts'
import type { Asker } from './admit.ts'

/** The queues that the key must be for; `allowed`: those that it is for. */
type Look = (engine: Pawl, args: readonly unknown[], allowed: readonly string[]) => Promise<readonly unknown[]>

const ofTask: Look = (engine, [id]) => engine.queuesOf([id])

/**
 * One that is gone is in no queue: nothing can be done to it, and what its key was answered may be told again. Nobody
 * chooses the id of a stage, so none is made under this one in between.
 */
const ofStage: Look = (engine, [id]) =>
  engine.stage(id as string).then(
    ({ queue }) => [queue],
    error => {
      if (error instanceof Problem && error.code === 'STAGE_NOT_FOUND') return []
      throw error
    },
  )

const queuesOfJob = async (engine: Pawl, id: string) =>
  (await engine.job(id)).stages.flatMap(({ queue }) => queue ?? [])

const queuesOf: Partial<Record<Operation, Look>> = {
  async addStages(engine, [id, stages], allowed) {
    // Only the engine knows the stages that these may need; it refuses what is no stage at all.
    demandQueues(allowed, queuesSaid(stages as StageSpec[]))
    demandJob(allowed, await queuesOfJob(engine, id as string))
    return []
  },
  addTasks: ofStage,
  sealStage: ofStage,
  async sealJob(engine, [id]) {
    return (await engine.job(id as string)).stages.map(({ queue }) => queue)
  },
  async enqueueMany(_, [items]) {
    return (items as NewTaskItem[]).map(item => item?.queue ?? item?.type)
  },
  async sync(engine, [request]) {
    const { queues = [], started = [], beats = [], artifacts = [], settled = [] } = request as SyncRequest
    const ids = [started, beats, artifacts, settled].flatMap(items =>
      Array.isArray(items) ? items.map(item => item?.id) : [],
    )
    return [...queues, ...(await engine.queuesOf(ids))]
  },
  async claims(_, [request]) {
    return (request as SyncRequest).queues ?? []
  },
  /** A type's queue has its name, unless a task says otherwise. */
  async putTaskType(_, [type]) {
    return [type as string]
  },
  /** A worker reads the files of earlier stages of its job, so one stage of the job in its queues is enough. */
  async stageFiles(engine, [id], allowed) {
    const { jobId, queue } = await engine.stage(id as string)
    return isForOne(allowed, await queuesOfJob(engine, jobId)) ? [] : [queue]
  },
  start: ofTask,
  heartbeat: ofTask,
  succeed: ofTask,
  fail: ofTask,
  skip: ofTask,
  release: ofTask,
  cancelled: ofTask,
  reportArtifacts: ofTask,
}

export async function demandQueuesOf(
  { queues: allowed }: Asker,
  engine: Pawl,
  operation: Operation,
  args: readonly unknown[],
): Promise<void> {
  if (allowed === null) return
  demandQueues(allowed, (await queuesOf[operation]?.(engine, args, allowed)) ?? [])
}

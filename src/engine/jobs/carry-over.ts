/**
 * Copies tasks that a clone need not repeat. They are marked as skipped and linked to the files of the tasks that
 * succeeded.
 */
import { newId } from '../../kernel/id.ts'
import type { StagePlan } from '../../kernel/plan.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { recordInputsOfJob } from '../../store/files/listings.ts'
import { linkArtifacts, skipTasks } from '../../store/files/reuse.ts'
import { lockJobAgainstDeletion } from '../../store/jobs/job-ends.ts'
import { countBlocked, insertStageTasks, type JobOfTasks } from '../../store/jobs/stage-tasks.ts'

export interface CarriedTask {
  /** JSON text. */
  readonly payload: string
  /** The task of the original job. */
  readonly doneBy: string
}

export interface StageWithCarried {
  readonly id: string
  readonly plan: StagePlan
  readonly carried?: readonly CarriedTask[]
}

const tasksPerBatch = 1000

/** Adds these tasks to a clone that is not visible yet, after the tasks that it has to run. */
export async function copyDoneTasks(
  sql: Sql,
  clonedFrom: string,
  job: JobOfTasks,
  stages: readonly StageWithCarried[],
  actor: string,
): Promise<void> {
  for (const { id, plan, carried = [] } of stages) {
    const stage = { id, jobId: job.id }
    for (let from = 0; from < carried.length; from += tasksPerBatch) {
      const tasks = carried.slice(from, from + tasksPerBatch).map(each => ({ ...each, id: newId(), type: plan.task! }))
      const reused = tasks.map(({ id: taskId, doneBy }) => ({ taskId, doneBy }))
      await sql.begin(async tx => {
        // If the original job has been deleted meanwhile, with its artifacts, the tasks stay blocked and run with the
        // others.
        await lockJobAgainstDeletion(tx, clonedFrom)
        await insertStageTasks(tx, job, [{ stageId: id, state: 'blocked', settings: plan.settings, tasks }], actor)
        await countBlocked(tx, stage, tasks.length)
        await skipTasks(tx, stage, reused)
        await linkArtifacts(tx, stage, reused)
      })
    }
  }
  await recordInputsOfJob(sql, job.id)
}

/** What a clone need not do again: it has those tasks too, passed over, with the files of the tasks that did them. */
import { newId } from '../../kernel/id.ts'
import type { StagePlan } from '../../kernel/plan.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { recordInputsOfJob } from '../../store/files/listings.ts'
import { linkArtifacts, skipTasks } from '../../store/files/reuse.ts'
import { lockJobAgainstDeletion } from '../../store/jobs/job-ends.ts'
import { countBlocked, insertStageTasks, type JobOfTasks } from '../../store/jobs/stage-tasks.ts'

export interface Carried {
  /** JSON text. */
  readonly payload: string
  /** The task of the job that is cloned. */
  readonly doneBy: string
}

export interface CarryingStage {
  readonly id: string
  readonly plan: StagePlan
  readonly carried?: readonly Carried[]
}

const tasksPerBatch = 1000

/** Fills a clone that nobody sees yet, behind the tasks that it has to do. */
export async function carryOver(
  sql: Sql,
  clonedFrom: string,
  job: JobOfTasks,
  stages: readonly CarryingStage[],
  actor: string,
): Promise<void> {
  for (const { id, plan, carried = [] } of stages) {
    const stage = { id, jobId: job.id }
    for (let from = 0; from < carried.length; from += tasksPerBatch) {
      const tasks = carried.slice(from, from + tasksPerBatch).map(each => ({ ...each, id: newId(), type: plan.task! }))
      const reused = tasks.map(({ id: taskId, doneBy }) => ({ taskId, doneBy }))
      await sql.begin(async tx => {
        // Should that job have been deleted meanwhile, with its ledger, they stay blocked, and are done with the rest.
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

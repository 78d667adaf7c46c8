/** Writes the tasks that the stages of a job are declared with, and copies those that a clone need not repeat. */
import { newId } from '../../kernel/id.ts'
import type { StagePlan } from '../../kernel/plan.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { recordInputsOfJob, skipReused } from '../../store/files/listings.ts'
import { lockJobAgainstDeletion } from '../../store/jobs/job-ends.ts'
import {
  countBlocked,
  insertStageTasks,
  type JobOfTasks,
  type NewStage,
  type StageTask,
  type StageTasks,
  stagesPerStatement,
} from '../../store/jobs/new-job.ts'
import { reserveIds } from '../../store/tasks/idempotency.ts'
import type { PayloadVersions } from '../../store/tasks/payload-schemas.ts'
import { checkedJson } from '../check.ts'
import type { Context } from '../context.ts'
import { throwIdTaken } from '../tasks/enqueue.ts'
import { insertChecked, type KnownSchemas, type NewPayloads } from '../tasks/payload-checks.ts'

export const tasksPerBatch = 5000

/** Has its stage's type unless it has its own. */
export type TaskToWrite = Pick<StageTask, 'payload' | 'own'> & Partial<Pick<StageTask, 'type'>>

export interface StageToWrite {
  /** Default: a new one. */
  readonly id?: string
  readonly plan: StagePlan
  readonly tasks: readonly TaskToWrite[]
  /** For clones: payloads, as JSON text, that a task of the original job has already done. */
  readonly carried?: readonly { readonly payload: string; readonly doneBy: string }[]
}

interface TaskWriter {
  readonly sql: Sql
  readonly actor: string
  /** The schemas to check payloads against; null: insert them as they are. */
  readonly schemas: KnownSchemas | null
  readonly beforeBatch?: (() => Promise<void>) | undefined
}

/** Inserts the declared tasks of stages in batches. The stages were inserted with their task counts. */
export async function writeTasks(
  { sql, actor, schemas, beforeBatch }: TaskWriter,
  job: JobOfTasks,
  stages: readonly (NewStage & { tasks: readonly TaskToWrite[] })[],
): Promise<void> {
  let batch: (StageTasks & StagePayloads)[] = []
  let size = 0
  const insert = (versions: PayloadVersions) => insertStageTasks(sql, job, batch, actor, versions)
  const write = async () => {
    await beforeBatch?.()
    const written = schemas === null ? insert('unchecked') : insertChecked(schemas, sql, payloadsOf(batch), insert)
    await written.catch(throwIdTaken)
    batch = []
    size = 0
  }
  for (const { id: stageId, plan, tasks: wantedTasks, blocked } of stages) {
    for (let from = 0; from < wantedTasks.length; ) {
      const some = wantedTasks.slice(from, from + tasksPerBatch - size)
      const tasks = some.map(task => ({ type: plan.task!, ...task, id: plan.taskId ?? newId() }))
      batch.push({ stageId, plan, from, state: blocked > 0 ? 'blocked' : 'queued', settings: plan.settings, tasks })
      size += some.length
      from += some.length
      if (size === tasksPerBatch || batch.length === stagesPerStatement) await write()
    }
  }
  await write()
  await reserveIds(sql, chosenTaskIds(stages)).catch(throwIdTaken)
}

export function chosenTaskIds(
  stages: readonly { readonly plan: StagePlan; readonly tasks: readonly unknown[] }[],
): string[] {
  return stages.flatMap(({ plan: { taskId }, tasks }) => (taskId && tasks.length > 0 ? [taskId] : []))
}

const copiesPerTransaction = 1000

/**
 * Copies tasks that a clone need not repeat, after the tasks that it has to run. They are marked as skipped and linked
 * to the files of the tasks that succeeded.
 */
export async function copyDoneTasks(
  sql: Sql,
  clonedFrom: string,
  job: JobOfTasks,
  stages: readonly (NewStage & Pick<StageToWrite, 'carried'>)[],
  actor: string,
): Promise<void> {
  for (const { id, plan, carried = [] } of stages) {
    const stage = { id, jobId: job.id }
    for (let from = 0; from < carried.length; from += copiesPerTransaction) {
      const some = carried.slice(from, from + copiesPerTransaction)
      const tasks = some.map(each => ({ ...each, id: newId(), type: plan.task! }))
      const reused = tasks.map(({ id: taskId, doneBy }) => ({ taskId, doneBy }))
      await sql.begin(async tx => {
        // If the original job has been deleted meanwhile, with its artifacts, the tasks stay blocked and run with the
        // others.
        await lockJobAgainstDeletion(tx, clonedFrom)
        const copied = { stageId: id, state: 'blocked' as const, settings: plan.settings, tasks }
        await insertStageTasks(tx, job, [copied], actor, 'unchecked')
        await countBlocked(tx, stage, tasks.length)
        await skipReused(tx, stage, reused)
      })
    }
  }
  await recordInputsOfJob(sql, job.id)
}

interface StagePayloads {
  readonly plan: StagePlan
  readonly tasks: readonly TaskToWrite[]
  /** Index of the first of these payloads in the stage. Default 0. */
  readonly from?: number
}

/** The payloads of stages, and their places in the spec. */
export function payloadsOf(parts: readonly StagePayloads[]): NewPayloads {
  return {
    tasks: parts.flatMap(({ plan, tasks }) => tasks.map(({ type = plan.task!, payload }) => ({ type, payload }))),
    at(index) {
      let before = 0
      for (const { plan, tasks, from = 0 } of parts) {
        if (index < before + tasks.length) return placeOf(plan, from + index - before)
        before += tasks.length
      }
      return 'stages'
    },
  }
}

const placeOf = ({ name, single }: StagePlan, index: number) =>
  single ? `stages.${name}.payload` : `stages.${name}.payloads[${index}]`

export function checkPayloads(context: Context, plan: StagePlan): TaskToWrite[] {
  return plan.payloads.map((payload, index) => ({
    payload: checkedJson(payload, context.maxPayloadBytes, placeOf(plan, index)),
  }))
}

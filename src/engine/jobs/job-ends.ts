/** Requests on finished jobs: retry in place or as a clone, and delete. */

import { ownQueueOf, sourceStagesOf } from '../../kernel/datum.ts'
import { newId } from '../../kernel/id.ts'
import { jobLifecycle } from '../../kernel/job.ts'
import { isFinal } from '../../kernel/lifecycle.ts'
import type { JobPlan, StagePlan } from '../../kernel/plan.ts'
import { ignoring, Problem } from '../../kernel/problem.ts'
import { controlFields, type RetryJobCall, retryJobFields } from '../../protocol/call-options.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import { findTasksToClone, removeJob, type TaskToClone } from '../../store/jobs/job-ends.ts'
import { readStages, type StageRow } from '../../store/jobs/jobs.ts'
import { getJob } from '../../store/jobs/read-jobs.ts'
import { checkId, checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { type ControlCall, requireState } from '../tasks/control.ts'
import { once, type UnitCall } from '../unit-of-work.ts'
import * as jobControl from './job-control.ts'
import { readJob } from './read-jobs.ts'
import { makeJobOnce, writeJob } from './submit.ts'
import type { StageToWrite, TaskToWrite } from './write-tasks.ts'

/**
 * Retries everything that did not succeed: in place, as the next round, or as a new job that contains only those tasks.
 */
export async function retryJob(context: Context, id: string, call: RetryJobCall & UnitCall = {}): Promise<JobView> {
  checkOptions(call, retryJobFields, 'retry')
  const { clone = false, name, ...rest } = call
  if (clone) {
    const jobId = checkId(id, 'JOB_NOT_FOUND')
    const { reason: _, ...submit } = rest
    const request = ['clone', jobId, ...(name === undefined ? [] : [name])]
    return makeJobOnce(context, submit, request, callOfClone => makeClone(context, jobId, name, callOfClone))
  }
  if (name !== undefined) {
    throw new Problem('OPTION_INVALID', { at: 'retry', option: 'name', must: 'be used only with `clone`' })
  }
  return jobControl.retry(context, id, rest)
}

/** Deletes a finished job with its stages, tasks and events. A job that is stopping is first cancelled hard. */
export async function deleteJob(context: Context, id: string, call: ControlCall = {}): Promise<void> {
  checkOptions(call, controlFields, 'delete')
  const sql = context.sqlFor(call.tx)
  const jobId = checkId(id, 'JOB_NOT_FOUND')
  const { idempotencyKey: _, ifState: _state, ...rest } = call
  const found = await getJob(sql, jobId)
  if (found !== undefined) requireState(call, found.state, { job: jobId })
  if (found?.state === 'stopping') {
    // The job may have ended since it was read.
    await jobControl.cancel(context, jobId, { ...rest, mode: 'hard' }).catch(ignoring('MOVE_REFUSED'))
  }
  await once(sql, call, ['delete', jobId], async outer => {
    const job = await readJob({ sql: outer }, jobId)
    if (!isFinal(jobLifecycle, job.state)) throw jobControl.moveRefused(job, 'delete')
    if ((await removeJob(outer, jobId)) !== 'not ended') return null
    throw jobControl.moveRefused(await readJob({ sql: outer }, jobId), 'delete')
  })
}

/**
 * Repeats a finished job as a new job that contains only the tasks that did not succeed. If a stage exchanges files
 * with other stages, the clone also contains the stage's remaining tasks, marked as skipped and linked to their files.
 * Later stages then find the files of the whole stage, and a repeated listing can tell new inputs from known ones.
 */
async function makeClone(
  context: Context,
  jobId: string,
  name: string | undefined,
  call: UnitCall & Pick<ControlCall, 'ifState'>,
): Promise<JobView> {
  const sql = context.sqlFor(call.tx)
  const job = await getJob(sql, jobId)
  if (job === undefined) throw new Problem('JOB_NOT_FOUND', { id: jobId })
  requireState(call, job.state, { job: jobId })
  if (!isFinal(jobLifecycle, job.state)) throw jobControl.moveRefused(job, 'clone')
  const stages = (await readStages(sql, jobId)).filter(({ kind }) => kind === 'work')
  const sourceNames = new Set(stages.flatMap(sourcesOf))
  const copiedStages = stages
    .filter(stage => sourceNames.has(stage.name) || listsInputsAgain(stage))
    .map(({ id }) => id)
  const cloned = cloneStages(stages, await findTasksToClone(sql, jobId, job.compensated, copiedStages))
  if (stages.every(isComplete) && cloned.every(({ tasks }) => tasks.length === 0)) {
    throw new Problem('NOTHING_TO_REDO', { job: jobId, state: job.state })
  }
  const plan: JobPlan = {
    ...job.plan,
    ...(name !== undefined && { name }),
    priority: job.priority,
    input: job.input,
    stages: cloned.map(stage => stage.plan),
  }
  return writeJob(context, plan, cloned, call, ['clone', jobId], jobId)
}

const sourcesOf = ({ plan: { files } }: StageRow) => (files === undefined ? [] : sourceStagesOf(files))

/** Everything the stage had to do has succeeded. A stage without tasks may get some in the clone. */
const isComplete = (stage: StageRow) => stage.total > 0 && stage.good === stage.total && !listsInputsAgain(stage)

/** True if not all inputs were found, or if they come from another stage, which may produce more files in the clone. */
function listsInputsAgain(stage: StageRow): boolean {
  return Boolean(stage.plan.files?.inputs) && (stage.listing !== 'done' || sourcesOf(stage).length > 0)
}

function cloneStages(stages: readonly StageRow[], tasks: readonly TaskToClone[]): StageToWrite[] {
  const ids = new Map(stages.map(({ id }) => [id, newId()]))
  const byStage = new Map(stages.map(({ id }): [string, TaskToClone[]] => [id, []]))
  for (const task of tasks) byStage.get(task.stageId)!.push(task)
  const growing = growingStages(stages, byStage)
  // A folder that another stage fills changes when that stage adds files.
  const isCarried = ({ doneBy, payload }: TaskToClone) =>
    doneBy !== null && !growing.some(id => payload.includes(sourceReference(id)))
  return stages.map(stage => {
    const mine = byStage.get(stage.id)!
    const sources = sourcesOf(stage).map(name => stages.find(each => each.name === name)!.id)
    const withClonedSources = (payload: string) =>
      sources.reduce(
        (text, source) => text.replaceAll(sourceReference(source), sourceReference(ids.get(source)!)),
        payload,
      )
    return {
      id: ids.get(stage.id)!,
      plan: planOf(stage),
      tasks: mine.flatMap(task =>
        isCarried(task) ? [] : [{ ...ownFieldsOf(task), payload: withClonedSources(task.payload) }],
      ),
      carried: mine.flatMap(task =>
        isCarried(task) ? [{ payload: withClonedSources(task.payload), doneBy: task.doneBy! }] : [],
      ),
    }
  })
}

/** The task's own settings and metadata, besides its payload. */
function ownFieldsOf({ type, settings, metadata }: TaskToClone): Pick<TaskToWrite, 'type' | 'own'> {
  const own = { ...(settings !== null && { settings }), ...(metadata !== null && { metadata }) }
  return { ...(type !== null && { type }), ...(Object.keys(own).length > 0 && { own }) }
}

/** Marks a folder of another stage's output files in the text of a payload. */
const sourceReference = (stageId: string) => `"stageId":"${stageId}"`

/** Stages that may produce files in the clone, and all stages that take files from them. */
function growingStages(stages: readonly StageRow[], tasks: ReadonlyMap<string, readonly TaskToClone[]>): string[] {
  const grows = (stage: StageRow): boolean =>
    tasks.get(stage.id)?.some(({ doneBy }) => doneBy === null) ||
    (Boolean(stage.listing) && stage.listing !== 'done') ||
    sourcesOf(stage).some(name => grows(stages.find(each => each.name === name)!))
  return stages.filter(grows).map(({ id }) => id)
}

/**
 * Conditions and lists that were evaluated are already tasks. A queue that belonged only to the original stage is not
 * kept.
 */
function planOf(stage: StageRow): StagePlan {
  const { id, plan, opening } = stage
  return {
    ...plan,
    ...(opening === 'yes' && { when: null, forEach: null }),
    ...(plan.files !== undefined && !listsInputsAgain(stage) && { files: { ...plan.files, inputs: null } }),
    ...(plan.queue === ownQueueOf(id) && { queue: null }),
    payloads: [],
  } as StagePlan
}

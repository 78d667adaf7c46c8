/**
 * A job that has ended is done again as a new one: just what did not succeed. Where other stages take the files of a
 * stage, or it takes those of others, the clone has the rest of its tasks too, passed over with their files: whoever
 * looks for files finds those of the whole stage, and what is found once more is told from what was not there before.
 */
import { ownQueueOf, takenBy } from '../../kernel/datum.ts'
import { newId } from '../../kernel/id.ts'
import { jobLifecycle } from '../../kernel/job.ts'
import { isFinal, movesOpenTo } from '../../kernel/lifecycle.ts'
import type { JobPlan, StagePlan } from '../../kernel/plan.ts'
import { Problem } from '../../kernel/problem.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import { findTasksToClone, type TaskToClone } from '../../store/jobs/job-ends.ts'
import { readStages, type StageRow } from '../../store/jobs/jobs.ts'
import { getJob } from '../../store/jobs/read-jobs.ts'
import { checkId } from '../check.ts'
import type { Context } from '../context.ts'
import { type ControlCall, demandState } from '../tasks/control.ts'
import { type StageToWrite, type SubmitCall, submitUnderKey, type TaskToWrite, writeJob } from './submit.ts'

export async function cloneJob(
  context: Context,
  id: string,
  name: string | undefined,
  call: ControlCall,
): Promise<JobView> {
  const jobId = checkId(id, 'JOB_NOT_FOUND')
  const { reason: _, ...submit } = call
  const request = ['clone', jobId, ...(name === undefined ? [] : [name])]
  return submitUnderKey(context, submit, request, rest => makeClone(context, jobId, name, rest))
}

async function makeClone(
  context: Context,
  jobId: string,
  name: string | undefined,
  call: SubmitCall & Pick<ControlCall, 'ifState'>,
): Promise<JobView> {
  const sql = context.within(call.tx)
  const job = await getJob(sql, jobId)
  if (job === undefined) throw new Problem('JOB_NOT_FOUND', { id: jobId })
  demandState(call, job.state, { job: jobId })
  if (!isFinal(jobLifecycle, job.state)) {
    const possible = movesOpenTo(jobLifecycle, job.state, 'operator')
    throw new Problem('MOVE_REFUSED', { job: jobId, state: job.state, move: 'clone', possible })
  }
  const stages = (await readStages(sql, jobId)).filter(({ kind }) => kind === 'work')
  const taken = new Set(stages.flatMap(sourcesOf))
  const whole = stages.filter(stage => taken.has(stage.name) || isFoundAnew(stage)).map(({ id }) => id)
  const made = clonesOf(stages, await findTasksToClone(sql, jobId, job.compensated, whole))
  if (stages.every(isDone) && made.every(({ tasks }) => tasks.length === 0)) {
    throw new Problem('NOTHING_TO_REDO', { job: jobId, state: job.state })
  }
  const plan: JobPlan = {
    ...job.plan,
    ...(name !== undefined && { name }),
    priority: job.priority,
    input: job.input,
    stages: made.map(stage => stage.plan),
  }
  return writeJob(context, plan, made, call, ['clone', jobId], jobId)
}

const sourcesOf = ({ plan: { files } }: StageRow) => (files === undefined ? [] : takenBy(files))

/** It has done all that it had to do; a stage without tasks may come to have some in the clone. */
const isDone = (stage: StageRow) => stage.total > 0 && stage.good === stage.total && !isFoundAnew(stage)

/** Inputs that had not all been found, and what other stages put out: they may put out more in the clone. */
function isFoundAnew(stage: StageRow): boolean {
  return Boolean(stage.plan.files?.inputs) && (stage.listing !== 'done' || sourcesOf(stage).length > 0)
}

function clonesOf(stages: readonly StageRow[], tasks: readonly TaskToClone[]): StageToWrite[] {
  const ids = new Map(stages.map(({ id }) => [id, newId()]))
  const byStage = new Map(stages.map(({ id }): [string, TaskToClone[]] => [id, []]))
  for (const task of tasks) byStage.get(task.stageId)!.push(task)
  const growing = growingOf(stages, byStage)
  // A folder that another stage fills is not the same any more when more comes into it.
  const isKept = ({ doneBy, payload }: TaskToClone) =>
    doneBy !== null && !growing.some(id => payload.includes(folderOf(id)))
  return stages.map(stage => {
    const mine = byStage.get(stage.id)!
    const sources = sourcesOf(stage).map(name => stages.find(each => each.name === name)!.id)
    const moved = (payload: string) =>
      sources.reduce((text, source) => text.replaceAll(folderOf(source), folderOf(ids.get(source)!)), payload)
    return {
      id: ids.get(stage.id)!,
      plan: planOf(stage),
      tasks: mine.flatMap(task => (isKept(task) ? [] : [{ ...again(task), payload: moved(task.payload) }])),
      carried: mine.flatMap(task => (isKept(task) ? [{ payload: moved(task.payload), doneBy: task.doneBy! }] : [])),
    }
  })
}

/** What it had of its own, beside its payload. */
function again({ type, settings, metadata }: TaskToClone): Pick<TaskToWrite, 'type' | 'own'> {
  const own = { ...(settings !== null && { settings }), ...(metadata !== null && { metadata }) }
  return { ...(type !== null && { type }), ...(Object.keys(own).length > 0 && { own }) }
}

/** How a payload's text says that a folder holds what a stage has put out. */
const folderOf = (stageId: string) => `"stageId":"${stageId}"`

/** Stages that may put out files in the clone, and those that take files of one. */
function growingOf(stages: readonly StageRow[], tasks: ReadonlyMap<string, readonly TaskToClone[]>): string[] {
  const grows = (stage: StageRow): boolean =>
    tasks.get(stage.id)?.some(({ doneBy }) => doneBy === null) ||
    (Boolean(stage.listing) && stage.listing !== 'done') ||
    sourcesOf(stage).some(name => grows(stages.find(each => each.name === name)!))
  return stages.filter(grows).map(({ id }) => id)
}

/** What was looked at has become tasks. A queue that only this stage had is not the clone's. */
function planOf(stage: StageRow): StagePlan {
  const { id, plan, opening } = stage
  return {
    ...plan,
    ...(opening === 'yes' && { when: null, forEach: null }),
    ...(plan.files !== undefined && !isFoundAnew(stage) && { files: { ...plan.files, inputs: null } }),
    ...(plan.queue === ownQueueOf(id) && { queue: null }),
    payloads: [],
  } as StagePlan
}

/** What is done with a job that has ended: it is tried again as a new one, or deleted. */
import { ownQueueOf } from '../kernel/datum.ts'
import { jobLifecycle } from '../kernel/job.ts'
import { isFinal, movesOpenTo } from '../kernel/lifecycle.ts'
import type { JobPlan, StagePlan } from '../kernel/plan.ts'
import { Problem } from '../kernel/problem.ts'
import { controlFields, retryJobFields } from '../protocol/fields.ts'
import type { JobView } from '../protocol/jobs.ts'
import { removeJob, unfinishedPayloads } from '../store/job-ends.ts'
import { getJob } from '../store/job-read.ts'
import { readStages, type StageRow } from '../store/jobs.ts'
import { checkId, checkOptions } from './check.ts'
import type { Context } from './context.ts'
import type { ControlCall } from './control.ts'
import * as jobControl from './job-control.ts'
import { readJob } from './job-read.ts'
import { once } from './once.ts'
import { writeJob } from './submit.ts'

/** Does again what did not succeed: in place, in the next round; or as a new job of just those tasks. */
export async function retryJob(context: Context, id: string, call: jobControl.RetryCall = {}): Promise<JobView> {
  checkOptions(call, retryJobFields, 'retry')
  const { clone = false, ...rest } = call
  return clone ? cloneJob(context, id, rest) : jobControl.retry(context, id, rest)
}

async function cloneJob(context: Context, id: string, call: ControlCall): Promise<JobView> {
  const sql = context.within(call.tx)
  const jobId = checkId(id, 'JOB_NOT_FOUND')
  const job = await getJob(sql, jobId)
  if (job === undefined) throw new Problem('JOB_NOT_FOUND', { id })
  if (!isFinal(jobLifecycle, job.state)) {
    const possible = movesOpenTo(jobLifecycle, job.state, 'operator')
    throw new Problem('MOVE_REFUSED', { job: jobId, state: job.state, move: 'clone', possible })
  }
  const stages = (await readStages(sql, jobId)).filter(({ kind }) => kind === 'work')
  const payloads = await unfinishedPayloads(sql, jobId, job.compensated)
  // What was looked at has become tasks, and these are what is done again.
  const seen = { when: null, forEach: null }
  const plans = stages.map(({ id, plan, opening, listing }) => ({
    plan: {
      ...plan,
      ...(opening === 'yes' && seen),
      ...found(plan, listing),
      ...fresh(id, plan),
      payloads: [],
    } as StagePlan,
    payloads: payloads.get(id) ?? [],
  }))
  const plan: JobPlan = {
    ...job.plan,
    priority: job.priority,
    input: job.input,
    stages: plans.map(stage => stage.plan),
  }
  const { reason: _, ...submit } = call
  return writeJob(context, plan, plans, submit, ['clone', jobId], jobId)
}

/** Inputs that were all found have become tasks; else they are found anew, and all of them done. */
function found({ files }: StageRow['plan'], listing: StageRow['listing']): Pick<StagePlan, 'files'> | object {
  return files !== undefined && listing === 'done' ? { files: { ...files, inputs: null } } : {}
}

/** A queue that only this stage had is not the clone's. */
const fresh = (id: string, { queue }: StageRow['plan']) => (queue === ownQueueOf(id) ? { queue: null } : {})

/** Deletes a job that has ended, with its stages, tasks and events. One that is stopping is made to end first. */
export async function deleteJob(context: Context, id: string, call: ControlCall = {}): Promise<void> {
  checkOptions(call, controlFields, 'delete')
  const sql = context.within(call.tx)
  const jobId = checkId(id, 'JOB_NOT_FOUND')
  const { idempotencyKey: _, ...rest } = call
  const found = await getJob(sql, jobId)
  if (found?.state === 'stopping') await jobControl.cancel(context, jobId, { ...rest, mode: 'hard' })
  await once(sql, call, ['delete', jobId], async outer => {
    const job = await readJob({ sql: outer }, jobId)
    if (!isFinal(jobLifecycle, job.state)) {
      const possible = movesOpenTo(jobLifecycle, job.state, 'operator')
      throw new Problem('MOVE_REFUSED', { job: jobId, state: job.state, move: 'delete', possible })
    }
    for (let gone = false; !gone; ) gone = await outer.begin(tx => removeJob(tx, jobId, 1000))
    return null
  })
}

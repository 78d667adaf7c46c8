/** A job that is submitted to be added to one that may be there already (`ifThere: 'add'`). */

import { queueOfStage } from '../../kernel/plan.ts'
import { Problem, type ProblemCode } from '../../kernel/problem.ts'
import { callFields } from '../../protocol/fields.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import { isObject } from '../../schema/check.ts'
import { isId } from '../../schema/fields.ts'
import type { JobSpec } from '../../spec/job-spec.ts'
import type { NamedJob } from '../../spec/named-job.ts'
import { readYaml } from '../../spec/read-yaml.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { readStages } from '../../store/jobs/jobs.ts'
import { getJob } from '../../store/jobs/read-jobs.ts'
import { checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { demandJob, demandQueues, queuesSaid } from '../key-queues.ts'
import { addStagesFromSpec } from './job-control.ts'
import { makeJobOnce, type SubmitCall, submitJob } from './submit.ts'

/** Submits a job, or adds its stages to the one that has its id, if it says so. */
export async function submitOrAdd(
  context: Context,
  spec: JobSpec | NamedJob | string,
  call: SubmitCall = {},
  queues: readonly string[] | null = null,
): Promise<JobView> {
  const written = typeof spec === 'string' ? parseText(spec) : spec
  // What is no such job, or cannot be one, is told as of any other.
  if (!isObject(written) || written.ifThere !== 'add' || !isId(written.id)) {
    return submitJob(context, spec, call, queues)
  }
  if (Array.isArray(written.stages)) demandQueues(queues, queuesSaid(written.stages))
  checkOptions(call, callFields, 'call')
  const job = { ...written, id: written.id.toLowerCase() } as unknown as JobSpec & { id: string }
  // Which of the two it is may be another when it is sent again.
  return makeJobOnce(context, call, ['submit', spec], rest => addOrSubmit(context, job, rest, queues))
}

function parseText(text: string): unknown {
  const read = readYaml(text)
  return 'value' in read ? read.value : undefined
}

const maxTries = 5

/**
 * Of many who submit the same id at once one makes the job: the primary key decides, and the others wait for it and add
 * to it. A job that goes in between is made anew, if its id is not used up.
 */
async function addOrSubmit(
  context: Context,
  job: JobSpec & { id: string },
  call: SubmitCall,
  queues: readonly string[] | null,
): Promise<JobView> {
  for (let tried = 1; ; tried++) {
    const isThere = (await getJob(context.sqlFor(call.tx), job.id)) !== undefined
    if (isThere && queues !== null) demandJob(queues, await queuesOfJob(context.sqlFor(call.tx), job.id))
    const changed: ProblemCode = isThere ? 'JOB_NOT_FOUND' : 'ID_TAKEN'
    try {
      return await (isThere ? addStagesFromSpec(context, job, call) : submitJob(context, job, call))
    } catch (error) {
      if (tried === maxTries || !(error instanceof Problem) || error.code !== changed) throw error
    }
  }
}

async function queuesOfJob(sql: Sql, jobId: string): Promise<string[]> {
  const stages = await readStages(sql, jobId)
  return stages.map(queueOfStage)
}

/** Submits a job, or adds its stages to an existing job (`ifThere: 'add'`). */
import { queueOfStage } from '../../kernel/plan.ts'
import { Problem, type ProblemCode } from '../../kernel/problem.ts'
import { callFields } from '../../protocol/call-options.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import { isObject } from '../../schema/check.ts'
import { isId } from '../../schema/fields.ts'
import type { JobSpec } from '../../spec/job-spec.ts'
import type { NamedJob } from '../../spec/parse-job-spec.ts'
import { readYaml } from '../../spec/read-yaml.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { readStages } from '../../store/jobs/jobs.ts'
import { getJob } from '../../store/jobs/read-jobs.ts'
import { checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { demandJob, demandQueues, queuesWritten } from '../queue-scope.ts'
import type { UnitCall } from '../unit-of-work.ts'
import { addStagesFromSpec } from './job-control.ts'
import { makeJobOnce, submitJob } from './submit.ts'

/** Submits a job. If the spec asks for it and a job with its id exists, adds the stages to that job. */
export async function submitOrAdd(
  context: Context,
  spec: JobSpec | NamedJob | string,
  call: UnitCall = {},
  queues: readonly string[] | null = null,
): Promise<JobView> {
  const written = typeof spec === 'string' ? parseText(spec) : spec
  // Any other spec is submitted as usual. The submission also reports invalid ones.
  if (!isObject(written) || written.ifThere !== 'add' || !isId(written.id)) {
    return submitJob(context, spec, call, queues)
  }
  if (Array.isArray(written.stages)) demandQueues(queues, queuesWritten(written.stages))
  checkOptions(call, callFields, 'call')
  const job = { ...written, id: written.id.toLowerCase() } as unknown as JobSpec & { id: string }
  // Which of the two cases applies may change when the request is repeated.
  return makeJobOnce(context, call, ['submit', spec], rest => addOrSubmit(context, job, rest, queues))
}

function parseText(text: string): unknown {
  const read = readYaml(text)
  return 'value' in read ? read.value : undefined
}

const maxTries = 5

/**
 * If several requests submit the same id concurrently, the primary key lets one of them create the job. The others wait
 * for it and add to it. If the job is deleted in between, it is created again, unless its id has been used up.
 */
async function addOrSubmit(
  context: Context,
  job: JobSpec & { id: string },
  call: UnitCall,
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

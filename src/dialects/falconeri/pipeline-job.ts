import { isObject } from '../../kernel/check.ts'
import type { JobSpec } from '../../spec/job-spec.ts'
import { jobOfPipeline } from '../../spec/pipeline.ts'

const day = 86_400
/** What a lease may be. */
const [shortest, longest] = [5, 7 * day]

/**
 * The job of a pipeline, for workers that do not beat: their leases last as long as the job may, and every start of a
 * datum is one of its tries. Pods are as many as it says, but whoever comes gets a datum: one that died holds none up.
 */
export function jobFor(pipeline: Record<string, unknown>, tag: string): JobSpec {
  const job = jobOfPipeline(pipeline)
  const [stage] = job.stages!
  const { parallelism, runner, retry, ...rest } = stage!
  const kubernetes = isObject(runner) ? runner.kubernetes : undefined
  const leaseSeconds = Math.min(Math.max(job.deadlineSeconds ?? day, shortest), longest)
  return {
    ...job,
    name: `${job.name}-${tag}`,
    input: pipeline,
    stages: [
      {
        ...rest,
        retry: { ...retry, losses: null },
        deadLetter: 'never',
        heartbeatSeconds: null,
        leaseSeconds,
        runner: { kubernetes: { ...kubernetes!, pods: parallelism! } },
      },
    ],
  }
}

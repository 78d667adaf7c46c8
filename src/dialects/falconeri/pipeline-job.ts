import { isObject } from '../../kernel/check.ts'
import type { JobSpec } from '../../spec/job-spec.ts'
import { jobOfPipeline } from '../../spec/pipeline.ts'

/**
 * The job of a pipeline, for workers that do not beat: every start of a datum is one of its tries. Pods are as many as it
 * says, but whoever comes gets a datum: one that died holds none up.
 */
export function jobFor(pipeline: Record<string, unknown>, tag: string, leaseSeconds: number): JobSpec {
  const job = jobOfPipeline(pipeline)
  const [stage] = job.stages!
  const { parallelism, runner, retry, ...rest } = stage!
  const kubernetes = isObject(runner) ? runner.kubernetes : undefined
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

/** What is submitted to the engine for Jobnik's jobs, stages and tasks, with Jobnik's timing. */
import type { AddedStage, NewStageTask } from '../../protocol/jobs/jobs.ts'
import type { JobSpec } from '../../spec/job-spec.ts'
import type { Call } from '../dialect.ts'
import { numberFor } from './priorities.ts'
import type { NewJob, NewStage, NewTask } from './requests.ts'

/**
 * Nobody seals it: it ends when it has had a stage and all of them have ended. Jobnik's document gives MEDIUM as the
 * default priority, in a place that its validator ignores, so that the default of its database counts.
 */
export function jobSpec({ name, data, priority = 'VERY_LOW', userMetadata = {}, ...rest }: NewJob): JobSpec {
  return { name, input: data, priority: numberFor(priority), metadata: userMetadata, open: 'untilDone', ...rest }
}

/** Jobnik's workers send no heartbeats: a worker that says nothing for `leaseSeconds` is taken for dead. */
export function stageSpec(stage: NewStage, leaseSeconds: number, call: Call): AddedStage {
  const { type, data, userMetadata = {}, startAsWaiting = false, traceparent = call.traceparent } = stage
  return {
    queue: type,
    data,
    metadata: userMetadata,
    open: 'untilDone',
    ...(startAsWaiting && { gate: true }),
    ...(traceparent !== undefined && { traceparent }),
    leaseSeconds,
    heartbeatSeconds: null,
    // Work in hand can always be reported: as long as it may take, it is waited for.
    graceSeconds: leaseSeconds,
    onFailure: 'failAtOnce',
    deadLetter: 'never',
    retry: { attempts: 1, delaySeconds: 0, jitter: false },
  }
}

export function taskSpec({ data, userMetadata = {}, maxAttempts = 1, traceparent }: NewTask, call: Call): NewStageTask {
  return {
    payload: data,
    metadata: userMetadata,
    retry: { attempts: maxAttempts },
    traceparent: traceparent ?? call.traceparent ?? null,
  }
}

/** What is submitted to the engine for Jobnik's jobs, stages and tasks, with Jobnik's timing. */
import type { AddedStage, NewStageTask } from '../../protocol/jobs.ts'
import type { JobSpec } from '../../spec/job-spec.ts'
import type { Call } from '../dialect.ts'
import { numberFor } from './priorities.ts'
import type { NewJob, NewStage, NewTask } from './requests.ts'

/** Its workers know no lease and no heartbeat: who says nothing for so long is taken for dead. */
const leaseSeconds = 1800

/**
 * Nobody seals it: it ends when it has had a stage and all of them have ended. Jobnik's document gives MEDIUM as the
 * default priority, in a place that its validator ignores, so that the default of its database counts.
 */
export function jobSpec({ name, data, priority = 'VERY_LOW', userMetadata = {}, ...traced }: NewJob): JobSpec {
  return { name, input: data, priority: numberFor(priority), metadata: userMetadata, open: 'untilDone', ...traced }
}

export function stageSpec(stage: NewStage, call: Call): AddedStage {
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

/** Explains the state of a job in one sentence. */
import type { JobView } from '../../../src/protocol/jobs/jobs.ts'
import type { TroubleView } from '../../../src/protocol/jobs/timeline.ts'

const causes: Readonly<Record<string, string>> = {
  rejected: 'its gate was rejected',
  gate_timeout: 'nobody approved its gate in time',
  condition_error: 'its condition could not be evaluated',
}

export function whyOf(job: JobView, troubles: readonly TroubleView[]): string | undefined {
  const waiting = job.stages.filter(({ state }) => state === 'waiting').map(({ name }) => name)
  if ((job.state === 'running' || job.state === 'pending') && waiting.length > 0)
    return `Waiting for approval of ${list(waiting)}.`
  if (job.state === 'paused') return 'The job is paused. No more tasks are claimed until it is resumed.'
  if (job.state === 'cancelled') return `The job was cancelled${because(job.cause, 'cancel')}.`
  if (job.state === 'expired') return 'The deadline passed before the job was done.'
  if (job.state === 'stopping') return `The job will end as ${job.endsAs} when its running tasks have ended.`
  if (job.state !== 'failed' && job.state !== 'partial') return undefined
  const bad = job.stages.filter(({ state }) => state === 'failed')
  const [first] = bad
  const verb = job.state === 'failed' ? 'failed' : 'is partial'
  if (first === undefined) return job.cause === null ? undefined : `The job ${verb}: ${job.cause}.`
  const what = bad.length === 1 ? `stage ${first.name} failed` : `stages ${list(bad.map(({ name }) => name))} failed`
  return `The job ${verb} because ${what}: ${detailOf(first, troubles)}`
}

/** How tasks fail by themselves. Tasks that were cancelled as a consequence are not a reason. */
const fates: Readonly<Record<string, string>> = {
  exhausted_retries: 'exhausted their retries',
  timeout: 'timed out',
  infrastructure_failure: 'were lost by their workers',
  validation_failed: 'had an invalid payload or output',
  failed: 'failed permanently',
  expired: 'expired',
  dead_lettered: 'became dead letters',
}

function detailOf(stage: JobView['stages'][number], troubles: readonly TroubleView[]): string {
  const known = stage.cause === null ? undefined : causes[stage.cause]
  if (known !== undefined) return stage.error === null ? `${known}.` : `${known} (${stage.error.message}).`
  const { bad, total } = stage.progress
  const mine = troubles.filter(({ state }) => state !== 'cancelled')
  const byFate = new Map<string, number>()
  for (const { reasonCode, state, count } of mine) {
    const fate = fates[reasonCode ?? ''] ?? fates[state] ?? 'ended badly'
    byFate.set(fate, (byFate.get(fate) ?? 0) + count)
  }
  const fate = [...byFate].map(([how, count]) => `${count} of ${total} tasks ${how}`).join(', ')
  const messages = mine.filter(({ message }) => message !== '').map(({ count, message }) => `${count} × “${message}”`)
  const ended = fate === '' ? `${bad} of ${total} tasks ended badly` : fate
  const more = messages.length > 3 ? ' and more' : ''
  return messages.length === 0 ? `${ended}.` : `${ended}: ${messages.slice(0, 3).join(', ')}${more}.`
}

const because = (cause: string | null, plain: string) => (cause === null || cause === plain ? '' : `: ${cause}`)
const list = (names: readonly string[]) => names.join(', ')

/** Why a job is as it is, in a sentence. */
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
    return `It waits for an approval of ${list(waiting)}.`
  if (job.state === 'paused') return 'It is paused: nothing more of it is claimed until it is resumed.'
  if (job.state === 'cancelled') return `It was cancelled${because(job.cause, 'cancel')}.`
  if (job.state === 'expired') return 'Its deadline passed before it was done.'
  if (job.state === 'stopping') return `It will end as ${job.endsAs}; what is in hand is awaited.`
  if (job.state !== 'failed' && job.state !== 'partial') return undefined
  const bad = job.stages.filter(({ state }) => state === 'failed')
  const [first] = bad
  const verb = job.state === 'failed' ? 'failed' : 'is partial'
  if (first === undefined) return job.cause === null ? undefined : `It ${verb}: ${job.cause}.`
  const what = bad.length === 1 ? `stage ${first.name} failed` : `stages ${list(bad.map(({ name }) => name))} failed`
  return `It ${verb} because ${what}: ${detailOf(first, troubles)}`
}

/** How a task can have gone bad by itself; what was called off with it is not why. */
const fates: Readonly<Record<string, string>> = {
  exhausted_retries: 'exhausted their retries',
  timeout: 'ran out of time',
  infrastructure_failure: 'were lost by their workers',
  validation_failed: 'had a payload that was refused',
  failed: 'failed for good',
  expired: 'were not done in time',
  dead_lettered: 'were set aside',
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
  const said = mine.filter(({ message }) => message !== '').map(({ count, message }) => `${count} × “${message}”`)
  const ended = fate === '' ? `${bad} of ${total} tasks ended badly` : fate
  const more = said.length > 3 ? ' and more' : ''
  return said.length === 0 ? `${ended}.` : `${ended}: ${said.slice(0, 3).join(', ')}${more}.`
}

const because = (cause: string | null, plain: string) => (cause === null || cause === plain ? '' : `: ${cause}`)
const list = (names: readonly string[]) => names.join(', ')

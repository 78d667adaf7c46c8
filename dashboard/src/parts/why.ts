/** Why a job is as it is, in a sentence. */
import type { JobView } from '../../../src/protocol/jobs.ts'
import type { TroubleView } from '../../../src/protocol/timeline.ts'

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

function detailOf(stage: JobView['stages'][number], troubles: readonly TroubleView[]): string {
  const known = stage.cause === null ? undefined : causes[stage.cause]
  if (known !== undefined) return stage.error === null ? `${known}.` : `${known} (${stage.error.message}).`
  const { bad, total } = stage.progress
  const said = troubles.slice(0, 3).map(({ count, message }) => `${count} × “${message}”`)
  const ended = `${bad} of ${total} tasks ended badly`
  return said.length === 0 ? `${ended}.` : `${ended}: ${said.join(', ')}${troubles.length > 3 ? ' and more' : ''}.`
}

const because = (cause: string | null, plain: string) => (cause === null || cause === plain ? '' : `: ${cause}`)
const list = (names: readonly string[]) => names.join(', ')

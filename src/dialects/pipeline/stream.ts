/**
 * How a job goes, as events. What a client has seen is in the id of the last event it got: how far each stage was. So it
 * may be cut off anywhere and come back to any server: what it has not seen is told, once, and nothing else. The feed
 * only says when to look again.
 */
import { jobLifecycle } from '../../kernel/job.ts'
import { isFinal, statesOf } from '../../kernel/lifecycle.ts'
import { Problem } from '../../kernel/problem.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import type { JobView, StageView } from '../../protocol/jobs/jobs.ts'
import type { AskersEngine } from '../askers-engine.ts'
import { aboutJob, errorsOf, type Look, shownStages, stageProgress, statusOf } from './shapes.ts'

/** Whoever follows a job wakes for these. */
const moves = [
  'stage.running',
  ...statesOf(stageLifecycle, 'final').map(state => `stage.${state}`),
  ...statesOf(jobLifecycle, 'final').map(state => `job.${state}`),
]

export interface Streaming {
  readonly engine: AskersEngine
  readonly signal: AbortSignal
  readonly heartbeatSeconds: number
  /** The job as it is, with what is shown of it. */
  look(): Promise<Look>
}

/** Nothing is left to tell to whoever has seen so much. */
export function hasSeenAll({ job }: Look, lastId: string | undefined): boolean {
  return isFinal(jobLifecycle, job.state) && readSeen(lastId).job >= ended(job)
}

/** `from`: the end of the feed before the first look. */
export async function* streamOf(
  { engine, signal, heartbeatSeconds, look }: Streaming,
  first: Look,
  from: string,
  lastId: string | undefined,
): AsyncGenerator<string, void, void> {
  yield 'retry: 1000\n\n'
  let told = news(first, readSeen(lastId))
  yield* told.frames
  if (told.isOver) return
  const ask = { cursor: from, jobId: first.job.id, types: moves }
  for await (const { items } of engine.follow(ask, { signal, silenceSeconds: heartbeatSeconds })) {
    const now = await look().catch(gone)
    if (now === undefined) return yield notFound
    told = news(now, told.seen)
    yield* told.frames
    if (told.isOver) return
    if (items.length === 0 && told.frames.length === 0) yield ': still here\n\n'
  }
}

export const notFound = `event: error\ndata: ${JSON.stringify({ error: 'Job not found' })}\n\n`

function gone(error: unknown): undefined {
  if (error instanceof Problem && error.code === 'JOB_NOT_FOUND') return undefined
  throw error
}

interface News {
  readonly frames: readonly string[]
  readonly seen: Seen
  readonly isOver: boolean
}

/** What somebody who has seen so much is told now, in the order in which it happened. */
function news(look: Look, seen: Seen): News {
  const { job } = look
  const stages = shownStages(job)
  const { trace_id, ...times } = aboutJob(job)
  const far = [...seen.stages]
  const frames: string[] = []
  const tell = (type: string, data: object, to: Seen) =>
    frames.push(`id: ${writeSeen(to)}\nevent: ${type}\ndata: ${JSON.stringify({ ...data, trace_id })}\n\n`)
  for (const { index, stage, step } of stepsOf(stages, far)) {
    far[index] = step === 'start' ? begun(stage) : ended(stage)
    const of = { stage: stage.name, started_at: stage.startedAt, finished_at: step === 'start' ? null : stage.endedAt }
    const over = stages.filter((each, n) => (far[n] ?? 0) >= ended(each))
    const progress = step === 'start' ? {} : { progress: stageProgress(look, over) }
    tell(step === 'start' ? 'stage_start' : 'stage_progress', { ...of, ...progress }, { job: seen.job, stages: far })
  }
  if (!isFinal(jobLifecycle, job.state)) return { frames, seen: { job: seen.job, stages: far }, isOver: false }
  const all = { job: ended(job), stages: far }
  const results = { stage_progress: stageProgress(look, stages), errors: errorsOf(look) }
  if (seen.job < all.job) tell('job_complete', { status: statusOf(job, look.now), ...results, ...times }, all)
  return { frames, seen: all, isOver: true }
}

interface Step {
  readonly index: number
  readonly stage: StageView
  readonly step: 'start' | 'end'
  readonly at: string
}

/** Beginnings and ends that are not among what was seen, in the order in which they came. */
function stepsOf(stages: readonly StageView[], seen: readonly number[]): Step[] {
  const steps = stages.flatMap((stage, index): Step[] => {
    const far = seen[index] ?? 0
    const { startedAt, endedAt } = stage
    return [
      ...(startedAt !== null && far < begun(stage) ? [{ index, stage, step: 'start' as const, at: startedAt }] : []),
      ...(endedAt !== null && far < ended(stage) ? [{ index, stage, step: 'end' as const, at: endedAt }] : []),
    ]
  })
  return steps.sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : one.index - other.index))
}

/** How far something is that has begun in its round, and that has ended in it: later rounds are further. */
const begun = ({ round }: Pick<StageView, 'round'>) => 2 * round - 1
const ended = ({ round }: Pick<StageView | JobView, 'round'>) => 2 * round

/** Encodes what a client of a stream has seen as a short id: the progress of the job and of its stages, in order. */
export interface Seen {
  readonly job: number
  readonly stages: readonly number[]
}

const form = /^\d{1,9}:(?:\d{1,9}(?:x\d{1,5})?(?:\.\d{1,9}(?:x\d{1,5})?)*)?$/
const nothing: Seen = { job: 0, stages: [] }
/** As many as a job may have. */
const mostStages = 10_000

/** Many stages that are equally far are one run: `2:2x40.1`. */
export function writeSeen({ job, stages }: Seen): string {
  const runs: { far: number; count: number }[] = []
  for (const far of Array.from(stages, far => far ?? 0)) {
    const last = runs.at(-1)
    if (last?.far === far) last.count += 1
    else runs.push({ far, count: 1 })
  }
  return `${job}:${runs.map(({ far, count }) => (count === 1 ? `${far}` : `${far}x${count}`)).join('.')}`
}

/** An id that is not ours says nothing: all is told from the beginning. */
export function readSeen(id: string | undefined): Seen {
  if (id === undefined || !form.test(id)) return nothing
  const [job = '0', rest = ''] = id.split(':')
  const runs = rest === '' ? [] : rest.split('.').map(run => run.split('x').map(Number))
  const total = runs.reduce((sum, [, count = 1]) => sum + count, 0)
  if (total > mostStages) return nothing
  return { job: Number(job), stages: runs.flatMap(([far = 0, count = 1]) => new Array<number>(count).fill(far)) }
}

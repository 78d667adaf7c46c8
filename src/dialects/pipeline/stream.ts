/**
 * The progress of a job as server-sent events. The id of each event says what the client has seen: how far each stage was.
 * So a client may be cut off at any point and reconnect to any server, and gets exactly the events that it has not seen.
 * The feed of the engine only tells when to read the job again.
 */
import { jobLifecycle } from '../../kernel/job.ts'
import { isFinal, statesOf } from '../../kernel/lifecycle.ts'
import { ignoring, Problem } from '../../kernel/problem.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import type { JobView, StageView } from '../../protocol/jobs/jobs.ts'
import type { DialectEngine } from '../dialect-engine.ts'
import { errorsOf, type Snapshot, shownStages, stageProgress, statusOf, traceAndTimes } from './views.ts'

/** Events after which the job is read again. */
const moves = [
  'stage.running',
  ...statesOf(stageLifecycle, 'final').map(state => `stage.${state}`),
  ...statesOf(jobLifecycle, 'final').map(state => `job.${state}`),
]

export interface Streaming {
  readonly engine: DialectEngine
  readonly id: string
  readonly signal: AbortSignal
  readonly heartbeatSeconds: number
  read(): Promise<Snapshot>
}

/** Whether a client that has seen this event has seen all of them. */
export function hasSeenAll({ job }: Snapshot, lastId: string | undefined): boolean {
  return isFinal(jobLifecycle, job.state) && readSeen(lastId).job >= ended(job)
}

/** Maximum number of stages of a job whose progress is streamed. The id of each event names them all. */
export const mostStreamed = 1000
/** Maximum number of stages whose progress an event tells: those that ended last. */
export const mostNamed = 100

export const tooManyStages = (id: string) =>
  new Problem('OPTION_INVALID', { option: 'id', must: `be a job of at most ${mostStreamed} stages`, id })

/** `from`: the end of the feed before the job was first read. */
export async function* streamOf(
  streaming: Streaming,
  from: string,
  lastId: string | undefined,
): AsyncGenerator<string, void, void> {
  const { engine, id: jobId, signal, heartbeatSeconds } = streaming
  yield 'retry: 1000\n\n'
  let sent = yield* newEvents(streaming, readSeen(lastId))
  if (sent.isOver) return
  const query = { cursor: from, jobId, types: moves }
  for await (const { items } of engine.follow(query, { signal, silenceSeconds: heartbeatSeconds })) {
    sent = yield* newEvents(streaming, sent.seen)
    if (sent.isOver) return
    if (items.length === 0 && !sent.isNew) yield ': still here\n\n'
  }
}

const errorEvent = (error: string) => `event: error\ndata: ${JSON.stringify({ error })}\n\n`
export const notFound = errorEvent('Job not found')

interface SentEvents {
  readonly seen: Seen
  /** Whether there was an event that the client had not seen. */
  readonly isNew: boolean
  readonly isOver: boolean
}

/**
 * Reads the job, and makes the events that a client has not seen, in the order in which they happened, as the client
 * takes them. Between two calls, no job is kept in memory.
 */
async function* newEvents({ read }: Pick<Streaming, 'read'>, seen: Seen): AsyncGenerator<string, SentEvents, void> {
  const snapshot = await read().catch(ignoring('JOB_NOT_FOUND'))
  const stages = snapshot === undefined ? [] : shownStages(snapshot.job)
  if (snapshot === undefined || stages.length > mostStreamed) {
    yield snapshot === undefined ? notFound : errorEvent(tooManyStages(snapshot.job.id).message)
    return { seen, isNew: true, isOver: true }
  }
  const { job } = snapshot
  const { trace_id, ...times } = traceAndTimes(job)
  const far = [...seen.stages]
  const hasSeenEnd = (stage: StageView, index: number) => (far[index] ?? 0) >= ended(stage)
  const over = stages.filter(hasSeenEnd).sort((one, other) => (one.endedAt! < other.endedAt! ? -1 : 1))
  const event = (type: string, data: object, to: Seen) =>
    `id: ${writeSeen(to)}\nevent: ${type}\ndata: ${JSON.stringify({ ...data, trace_id })}\n\n`
  const steps = stepsOf(stages, far)
  for (const { index, stage, step } of steps) {
    const isEnd = step === 'end'
    far[index] = isEnd ? ended(stage) : started(stage)
    if (isEnd) over.push(stage)
    const times = { started_at: stage.startedAt, finished_at: isEnd ? stage.endedAt : null }
    const progress = isEnd ? { progress: stageProgress(snapshot, over.slice(-mostNamed)) } : {}
    const type = isEnd ? 'stage_progress' : 'stage_start'
    yield event(type, { stage: stage.name, ...times, ...progress }, { job: seen.job, stages: far })
  }
  const isOver = isFinal(jobLifecycle, job.state)
  const all = { job: isOver ? ended(job) : seen.job, stages: far }
  if (seen.job < all.job) {
    const results = { stage_progress: stageProgress(snapshot, stages), errors: errorsOf(snapshot) }
    yield event('job_complete', { status: statusOf(job, snapshot.now), ...results, ...times }, all)
  }
  return { seen: all, isNew: steps.length > 0, isOver }
}

interface Step {
  readonly index: number
  readonly stage: StageView
  readonly step: 'start' | 'end'
  readonly at: string
}

/** Starts and ends that the client has not seen, in the order in which they happened. */
function stepsOf(stages: readonly StageView[], seen: readonly number[]): Step[] {
  const steps = stages.flatMap((stage, index): Step[] => {
    const far = seen[index] ?? 0
    const { startedAt, endedAt } = stage
    return [
      ...(startedAt !== null && far < started(stage) ? [{ index, stage, step: 'start' as const, at: startedAt }] : []),
      ...(endedAt !== null && far < ended(stage) ? [{ index, stage, step: 'end' as const, at: endedAt }] : []),
    ]
  })
  return steps.sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : one.index - other.index))
}

/** Progress as a number that grows with each start, end and round. */
const started = ({ round }: Pick<StageView, 'round'>) => 2 * round - 1
const ended = ({ round }: Pick<StageView | JobView, 'round'>) => 2 * round

/** Encodes what a client of a stream has seen as a short id: the progress of the job and of its stages, in order. */
export interface Seen {
  readonly job: number
  readonly stages: readonly number[]
}

const form = /^\d{1,9}:(?:\d{1,9}(?:x\d{1,5})?(?:\.\d{1,9}(?:x\d{1,5})?)*)?$/
const nothing: Seen = { job: 0, stages: [] }
/** The limit for a job. */
const mostStages = 10_000

/** Consecutive stages with the same progress are written as one run: `2:2x40.1`. */
export function writeSeen({ job, stages }: Seen): string {
  const runs: { far: number; count: number }[] = []
  for (const far of Array.from(stages, far => far ?? 0)) {
    const last = runs.at(-1)
    if (last?.far === far) last.count += 1
    else runs.push({ far, count: 1 })
  }
  return `${job}:${runs.map(({ far, count }) => (count === 1 ? `${far}` : `${far}x${count}`)).join('.')}`
}

/** After an id that was not written here, the stream starts from the beginning. */
export function readSeen(id: string | undefined): Seen {
  if (id === undefined || !form.test(id)) return nothing
  const [job = '0', rest = ''] = id.split(':')
  const runs = rest === '' ? [] : rest.split('.').map(run => run.split('x').map(Number))
  const total = runs.reduce((sum, [, count = 1]) => sum + count, 0)
  if (total > mostStages) return nothing
  return { job: Number(job), stages: runs.flatMap(([far = 0, count = 1]) => new Array<number>(count).fill(far)) }
}

/** Watches a job, and shows its progress: a bar for each stage, and an estimate of the time left. */

import { sanitize } from '../kernel/sanitize.ts'
import type { JobView, Progress, StageView } from '../protocol/jobs/jobs.ts'
import type { PawlApi } from '../protocol/operations.ts'
import { formatDuration } from './durations.ts'
import { hasEnded, readableCause, stateMark, styledState } from './states.ts'
import { cut, type Line, lineWidth, type Piece, styled, widthOf } from './styled-line.ts'
import type { TerminalOutput } from './terminal-output.ts'
import { pause, retryUntilAvailable } from './waiting.ts'

export interface WatchOptions {
  readonly api: PawlApi
  readonly output: TerminalOutput
  readonly signal: AbortSignal
  /** Show no progress. */
  readonly silent?: boolean
  /**
   * The job, if this command has just submitted it: then even the first read is retried while the server is
   * unavailable.
   */
  readonly submitted?: JobView
  /** Called with every state of the job that was read. */
  onRead?(job: JobView): Promise<void>
}

const pollMs = 200

/**
 * Shows the progress of a job until it has ended or the signal aborts, and returns the job as last read. A server that
 * is unavailable for a while is waited for.
 */
export async function watchJob(id: string, options: WatchOptions): Promise<JobView> {
  const { api, output, signal, silent, submitted, onRead } = options
  const estimate = makeEstimate()
  const readAgain = async (last: JobView) => (await retryUntilAvailable(() => api.job(id), options)) ?? last
  // Without `submitted`, the job or the server may not exist, and the first read reports that at once.
  let job = submitted === undefined ? await api.job(id) : await readAgain(submitted)
  let shown: JobView | undefined
  for (;;) {
    if (!silent) show(output, shown, job, estimate(job.progress, performance.now()))
    shown = job
    await onRead?.(job)
    if (hasEnded('job', job.state) || signal.aborted) break
    await pause(pollMs, signal)
    job = await readAgain(job)
  }
  output.keepDrawing()
  return job
}

function show(
  output: TerminalOutput,
  before: JobView | undefined,
  job: JobView,
  leftSeconds: number | undefined,
): void {
  if (output.isTerminal) output.draw(progressLines(job, output, leftSeconds))
  else for (const line of changes(before, job)) output.print(line)
}

const endedOf = ({ good, bad }: Progress) => good + bad

/**
 * Estimates the seconds left from the rate at which tasks ended in the last `windowMs`. Undefined until some have
 * ended.
 */
export function makeEstimate(windowMs = 30_000) {
  let samples: { atMs: number; ended: number }[] = []
  return (progress: Progress, atMs: number): number | undefined => {
    const ended = endedOf(progress)
    const last = samples.at(-1)
    // Fewer than before: a new round has begun.
    if (last !== undefined && ended < last.ended) samples = []
    samples = [...samples.filter(sample => sample.atMs >= atMs - windowMs), { atMs, ended }]
    const first = samples[0]!
    const rate = (ended - first.ended) / (atMs - first.atMs)
    return rate > 0 ? (progress.total - ended) / rate / 1000 : undefined
  }
}

/** One line for the job, and one for each stage. */
export function progressLines(
  job: JobView,
  { width, height }: Pick<TerminalOutput, 'width' | 'height'>,
  leftSeconds?: number,
): Line[] {
  const names = job.stages.map(({ name }) => widthOf(sanitize(name)))
  const nameWidth = Math.min(Math.max(8, ...names), Math.max(8, Math.floor(width / 3)))
  const barWidth = Math.max(6, Math.min(24, width - nameWidth - 30))
  const left =
    leftSeconds === undefined || hasEnded('job', job.state) ? '' : `  about ${formatDuration(leftSeconds)} left`
  const header: Line = [
    styled('bold', job.name),
    '  ',
    styledState('job', job.state),
    `  ${job.progress.percent} %${left}`,
  ]
  const { shown, hidden } = fitStages(job.stages, height - 3)
  const more: Line[] = hidden === 0 ? [] : [styled('dim', `  … and ${hidden} more stages`)]
  return [header, ...shown.map(stage => stageLine(stage, nameWidth, barWidth)), ...more]
}

/** If there are too many stages, running and failed ones are shown first. */
function fitStages(stages: readonly StageView[], maxStages: number): { shown: readonly StageView[]; hidden: number } {
  if (stages.length <= maxStages) return { shown: stages, hidden: 0 }
  const isImportant = ({ state }: StageView) => ['running', 'waiting', 'stopping', 'failed', 'partial'].includes(state)
  const isPending = ({ state }: StageView) => state === 'pending' || state === 'created'
  const rank = (stage: StageView) => (isImportant(stage) ? 0 : isPending(stage) ? 1 : 2)
  const chosen = [...stages].sort((one, other) => rank(one) - rank(other)).slice(0, Math.max(1, maxStages))
  return { shown: stages.filter(stage => chosen.includes(stage)), hidden: stages.length - chosen.length }
}

function stageLine(stage: StageView, nameWidth: number, barWidth: number): Line {
  const name = cut(sanitize(stage.name), nameWidth)
  const start: Piece[] = ['  ', stateMark('stage', stage.state), ` ${name}${' '.repeat(nameWidth - widthOf(name))}  `]
  const { total, bad, percent } = stage.progress
  const counts = total === 0 ? [] : [` ${endedOf(stage.progress)}/${total}`]
  const failures = bad === 0 ? [] : [styled('red', ` ${bad} bad`)]
  const shownPercent = stage.state === 'succeeded' ? 100 : percent
  return [...start, ...bar(shownPercent, barWidth), ...counts, ...failures, '  ', ...stageNote(stage)]
}

function bar(percent: number, width: number): Piece[] {
  const done = Math.floor((width * percent) / 100)
  return [styled('green', '█'.repeat(done)), styled('dim', '░'.repeat(width - done))]
}

/** The text beside the bar: why the stage waits, or why it ended. */
function stageNote({ state, gate, approvals, held, cause, error }: StageView): Piece[] {
  if (state === 'waiting' && gate !== null) {
    return [
      styled(
        'yellow',
        `waiting for approval (${approvals.length} of ${gate.approvers})${gate.ask ? `: ${gate.ask}` : ''}`,
      ),
    ]
  }
  if (state === 'waiting' || held) return [styled('yellow', 'held')]
  if (state === 'succeeded' || state === 'created' || state === 'pending') return []
  const reason = error?.message ?? (hasEnded('stage', state) ? readableCause(cause) : null)
  return [styledState('stage', state), ...(reason === null || reason === undefined ? [] : [`: ${reason}`])]
}

/** One line for each change of state, for output that is not a terminal. */
function changes(before: JobView | undefined, now: JobView): Line[] {
  const lines: Line[] = []
  if (before?.state !== now.state) lines.push([styled('bold', now.name), '  ', styledState('job', now.state)])
  for (const stage of now.stages) {
    const earlier = before?.stages.find(({ id }) => id === stage.id)
    if (earlier?.state === stage.state || (earlier === undefined && stage.state === 'created')) continue
    const { total } = stage.progress
    const note = stageNote(stage)
    const text = lineWidth(note) === 0 ? [styledState('stage', stage.state)] : note
    lines.push([
      '  ',
      stateMark('stage', stage.state),
      ` ${stage.name}  `,
      ...text,
      total === 0 ? '' : `  ${endedOf(stage.progress)}/${total}`,
    ])
  }
  return lines
}

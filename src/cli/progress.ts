/** The progress of a job: a bar for each stage, and an estimate of the time left. */

import { sanitize } from '../kernel/sanitize.ts'
import type { JobView, Progress, StageView } from '../protocol/jobs/jobs.ts'
import { formatDuration } from './durations.ts'
import { hasEnded, readableCause, stateMark, styledState } from './states.ts'
import { type Line, lineWidth, type Piece, styled } from './styled-line.ts'
import { cut, widthOf } from './text-width.ts'

const endedOf = ({ good, bad }: Progress) => good + bad

/** Estimates the seconds left from the rate at which tasks ended in the last `windowMs`. Undefined until some have ended. */
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

export interface DisplaySize {
  readonly width: number
  readonly height: number
}

/** One line for the job, and one for each stage. */
export function progressLines(job: JobView, { width, height }: DisplaySize, leftSeconds?: number): Line[] {
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
export function changes(before: JobView | undefined, now: JobView): Line[] {
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

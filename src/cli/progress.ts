/** How far a job is: a bar for each stage, and an estimate of the time left. */

import { sanitize } from '../kernel/sanitize.ts'
import type { JobView, Progress, StageView } from '../protocol/jobs/jobs.ts'
import { type Line, lineWidth, type Piece, styled } from './line.ts'
import { span } from './moments.ts'
import { causeOf, hasEnded, markOf, stateOf } from './states.ts'
import { cut, widthOf } from './text.ts'

const endedOf = ({ good, bad }: Progress) => good + bad

/** Looks at how many tasks ended lately; says how long the rest would take at that pace, once it has seen some end. */
export function makeEstimate(windowMs = 30_000) {
  let seen: { atMs: number; ended: number }[] = []
  return (progress: Progress, atMs: number): number | undefined => {
    const ended = endedOf(progress)
    const last = seen.at(-1)
    // A new round begins from less.
    if (last !== undefined && ended < last.ended) seen = []
    seen = [...seen.filter(look => look.atMs >= atMs - windowMs), { atMs, ended }]
    const first = seen[0]!
    const rate = (ended - first.ended) / (atMs - first.atMs)
    return rate > 0 ? (progress.total - ended) / rate / 1000 : undefined
  }
}

export interface Room {
  readonly width: number
  readonly height: number
}

/** The job on one line, then a line for each stage. */
export function progressLines(job: JobView, { width, height }: Room, leftSeconds?: number): Line[] {
  const names = job.stages.map(({ name }) => widthOf(sanitize(name)))
  const nameWidth = Math.min(Math.max(8, ...names), Math.max(8, Math.floor(width / 3)))
  const barWidth = Math.max(6, Math.min(24, width - nameWidth - 30))
  const left = leftSeconds === undefined || hasEnded('job', job.state) ? '' : `  about ${span(leftSeconds)} left`
  const head: Line = [styled('bold', job.name), '  ', stateOf('job', job.state), `  ${job.progress.percent} %${left}`]
  const { shown, hidden } = inRoom(job.stages, height - 3)
  const more: Line[] = hidden === 0 ? [] : [styled('dim', `  … and ${hidden} more stages`)]
  return [head, ...shown.map(stage => stageLine(stage, nameWidth, barWidth)), ...more]
}

/** Where there are too many, those that are at work or in trouble are shown first. */
function inRoom(stages: readonly StageView[], room: number): { shown: readonly StageView[]; hidden: number } {
  if (stages.length <= room) return { shown: stages, hidden: 0 }
  const matters = ({ state }: StageView) => ['running', 'waiting', 'stopping', 'failed', 'partial'].includes(state)
  const waits = ({ state }: StageView) => state === 'pending' || state === 'created'
  const rank = (stage: StageView) => (matters(stage) ? 0 : waits(stage) ? 1 : 2)
  const chosen = [...stages].sort((one, other) => rank(one) - rank(other)).slice(0, Math.max(1, room))
  return { shown: stages.filter(stage => chosen.includes(stage)), hidden: stages.length - chosen.length }
}

function stageLine(stage: StageView, nameWidth: number, barWidth: number): Line {
  const name = cut(sanitize(stage.name), nameWidth)
  const lead: Piece[] = ['  ', markOf('stage', stage.state), ` ${name}${' '.repeat(nameWidth - widthOf(name))}  `]
  const { total, bad, percent } = stage.progress
  const counts = total === 0 ? [] : [` ${endedOf(stage.progress)}/${total}`]
  const trouble = bad === 0 ? [] : [styled('red', ` ${bad} bad`)]
  const full = stage.state === 'succeeded' ? 100 : percent
  return [...lead, ...bar(full, barWidth), ...counts, ...trouble, '  ', ...sayOf(stage)]
}

function bar(percent: number, width: number): Piece[] {
  const done = Math.floor((width * percent) / 100)
  return [styled('green', '█'.repeat(done)), styled('dim', '░'.repeat(width - done))]
}

/** What people want to know of a stage beside its bar: what it waits for, or why it ended. */
function sayOf({ state, gate, approvals, held, cause, error }: StageView): Piece[] {
  if (state === 'waiting' && gate !== null) {
    return [
      styled(
        'yellow',
        `waits for approval (${approvals.length} of ${gate.approvers})${gate.ask ? `: ${gate.ask}` : ''}`,
      ),
    ]
  }
  if (state === 'waiting' || held) return [styled('yellow', 'held')]
  if (state === 'succeeded' || state === 'created' || state === 'pending') return []
  const why = error?.message ?? (hasEnded('stage', state) ? causeOf(cause) : null)
  return [stateOf('stage', state), ...(why === null || why === undefined ? [] : [`: ${why}`])]
}

/** One line for each thing that changed: what a log shows in place of a display. */
export function changes(before: JobView | undefined, now: JobView): Line[] {
  const lines: Line[] = []
  if (before?.state !== now.state) lines.push([styled('bold', now.name), '  ', stateOf('job', now.state)])
  for (const stage of now.stages) {
    const earlier = before?.stages.find(({ id }) => id === stage.id)
    if (earlier?.state === stage.state || (earlier === undefined && stage.state === 'created')) continue
    const { total } = stage.progress
    const say = sayOf(stage)
    const what = lineWidth(say) === 0 ? [stateOf('stage', stage.state)] : say
    lines.push([
      '  ',
      markOf('stage', stage.state),
      ` ${stage.name}  `,
      ...what,
      total === 0 ? '' : `  ${endedOf(stage.progress)}/${total}`,
    ])
  }
  return lines
}

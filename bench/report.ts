// The results of the run, as lines for the terminal and as RESULTS.md with its chart.

import { mkdir, writeFile } from 'node:fs/promises'
import { arch, cpus, release, totalmem, type } from 'node:os'
import { join } from 'node:path'
import { barChart } from './chart.ts'
import type { Figure, Section } from './contender.ts'
import type { FsyncLatency } from './disk.ts'
import type { Absence } from './entrants.ts'
import { goalsTable } from './goals.ts'
import { milliseconds, table, whole } from './markdown.ts'
import type { Figures, Plan } from './rounds.ts'
import { median, percentile } from './statistics.ts'

export interface Run {
  command: string
  plan: Plan
  postgres: { version: string; settings: Record<string, string> }
  fsync: FsyncLatency
  minutes: number
  /** The comparison with the peers. */
  compared: Figures[]
  /** All figures of the run. */
  figures: Figure[]
  /** Peers that are not installed, and measures that failed. */
  absences: Absence[]
  /** The sections of the measures, in order. */
  sections: Section[]
}

const ours = 'pawl'

const measures = {
  enqueue: { better: 'higher', of: (figures: Figures) => median(figures.enqueue) },
  drain: { better: 'higher', of: (figures: Figures) => median(figures.drain) },
  'latency p50': { better: 'lower', of: (figures: Figures) => percentile(figures.latency, 0.5) },
} as const

/** Our figure divided by that of the peer. */
interface Ratio {
  own: string
  peer: string
  measure: string
  better: 'higher' | 'lower'
  ratio: number
}

/** In process and over HTTP, for each peer and measure. */
function ratiosOf(compared: Figures[]): Ratio[] {
  const isOurs = ({ name }: Figures) => name.startsWith(ours)
  const peers = compared.filter(figure => !isOurs(figure))
  return compared
    .filter(isOurs)
    .flatMap(own =>
      Object.entries(measures).flatMap(([measure, { better, of }]) =>
        peers.map(peer => ({ own: own.name, peer: peer.name, measure, better, ratio: of(own) / of(peer) })),
      ),
    )
}

export function ratioLines(compared: Figures[]): string[] {
  return ratiosOf(compared).map(({ own, peer, measure, better, ratio }) => {
    const note = better === 'lower' ? ' (lower is better)' : ''
    return `${own} ${measure} vs ${peer}: ${ratio.toFixed(better === 'lower' ? 2 : 1)}x${note}`
  })
}

/** The numbers of the comparison by name, such as `pawl.drain`, and our ratios, such as `pawl.drain vs pg-boss`. */
export function comparisonFigures(compared: Figures[]): Figure[] {
  const ratios = ratiosOf(compared).map(({ own, peer, measure, better, ratio }): Figure => {
    return { name: `${own}.${measure.replace(' ', '-')} vs ${peer}`, value: ratio, unit: 'x', better }
  })
  return [...compared.flatMap(figuresOf), ...ratios]
}

function figuresOf({ name, enqueue, drain, latency }: Figures): Figure[] {
  return [
    { name: `${name}.enqueue`, value: median(enqueue), unit: 'tasks/s', better: 'higher' },
    { name: `${name}.drain`, value: median(drain), unit: 'tasks/s', better: 'higher' },
    { name: `${name}.latency-p50`, value: percentile(latency, 0.5), unit: 'ms', better: 'lower' },
    { name: `${name}.latency-p99`, value: percentile(latency, 0.99), unit: 'ms', better: 'lower' },
  ]
}

/** The figures of all contenders, with the minimum and maximum of their rounds. */
export function figuresTable(figures: Figures[]): string {
  const rows = figures.map(({ name, enqueue, drain, latency }) => [
    name,
    rate(enqueue),
    rate(drain),
    ...[0.5, 0.95, 0.99].map(share => milliseconds(percentile(latency, share))),
  ])
  const head = ['', 'enqueue, tasks/s', 'drain, tasks/s', 'latency p50', 'p95', 'p99']
  return table(head, rows)
}

export async function writeReport(folder: string, run: Run): Promise<void> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'results.svg'), chart(run.compared))
  await writeFile(join(folder, 'RESULTS.md'), markdown(run))
}

function markdown(run: Run): string {
  const { plan, compared, absences } = run
  const lines = ratioLines(compared)
  const parts = [
    '# Results',
    `Written by one run of \`${run.command}\` on ${new Date().toISOString().slice(0, 10)}, in ` +
      `${run.minutes.toFixed(0)} minutes. Ratios hold where times do not: all contenders ran in turn, in the same ` +
      'process, on the same Node and the same PostgreSQL.',
    '[history.svg](history.svg) shows the figures of earlier commits.',
    ...absences.map(({ name, why }) => `Left out: ${name} (${why}).`),
    '## Goals',
    goalsTable(run.figures),
    'Where the time goes for each goal that is missed, and what would be needed: [PROFILES.md](PROFILES.md).',
    `A write of 8 kB with fsync takes ${milliseconds(run.fsync.p50)} on this disk (p99 ${milliseconds(run.fsync.p99)}).`,
    '## Beside its peers',
    '![Tasks per second and latency of each contender](results.svg)',
    figuresTable(compared),
    `Medians of ${compared[0]?.drain.length ?? 0} rounds of ${whole(plan.tasks)} tasks, with the least and the most; ` +
      `latency from ${whole(compared[0]?.latency.length ?? 0)} single tasks on idle workers.`,
    lines.length > 0 ? `\`\`\`\n${lines.join('\n')}\n\`\`\`` : '',
    ...run.sections.flatMap(({ title, markdown: text }) => [`## ${title}`, text.trim()]),
    '## What is measured',
    definitions,
    '## Machine and versions',
    table(['', ''], machineRows(run)),
    '## Settings',
    table(
      ['', ''],
      compared.map(({ name, settings }) => [name, settings]),
    ),
  ]
  return `${parts.filter(part => part !== '').join('\n\n')}\n`
}

const definitions = `- **enqueue**: tasks with about 100 bytes of JSON, in bulk, until the last one is committed.
- **drain**: from the start of the workers until an asynchronous handler that does nothing has run for every task and
  every completion is recorded; afterwards it is checked that none is left.
- **latency**: from the call that enqueues one task to the start of its handler, with idle workers, at random moments.

Before each step the database is vacuumed, analysed and checkpointed. The first round is not counted. Every contender
has one Node process and as many connections as its settings say, but for \`pawl-http\`, which has a server process and
four worker processes; each was given the fastest of the settings tried;
graphile-worker comes twice, as its documentation sets it up and as we found it fastest (\`-tuned\`).`

export function machineRows({ postgres, compared, fsync }: Run): string[][] {
  const processors = cpus()
  const settings = Object.entries(postgres.settings).map(([name, value]) => `${name} = ${value}`)
  return [
    ['processor', `${processors[0]?.model ?? 'unknown'}, ${processors.length} cores`],
    ['memory', `${Math.round(totalmem() / 2 ** 30)} GB`],
    ['system', `${type()} ${release()} ${arch()}`],
    ['Node', process.version],
    ['PostgreSQL', `${postgres.version} (${settings.join(', ')})`],
    ['write of 8 kB with fsync', `p50 ${milliseconds(fsync.p50)}, p99 ${milliseconds(fsync.p99)}`],
    ...compared.map(({ name, version }) => [name, version]),
  ]
}

function chart(figures: Figures[]): string {
  const bars = (of: (figures: Figures) => number, show: (value: number) => string) =>
    figures.map(each => ({ label: each.name, value: of(each), text: show(of(each)) }))
  return barChart('Pawl beside its peers', [
    { title: 'Enqueue in bulk, tasks per second', bars: bars(measures.enqueue.of, whole) },
    { title: 'Drain, tasks per second', bars: bars(measures.drain.of, whole) },
    { title: 'Latency p50 (lower is better)', bars: bars(measures['latency p50'].of, milliseconds) },
  ])
}

function rate(values: number[]): string {
  return `${whole(median(values))} (${whole(Math.min(...values))}–${whole(Math.max(...values))})`
}

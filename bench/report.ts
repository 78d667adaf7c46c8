// The results of the run, as lines for the terminal and as RESULTS.md with its chart.

import { mkdir, writeFile } from 'node:fs/promises'
import { arch, cpus, release, totalmem, type } from 'node:os'
import { join } from 'node:path'
import { barChart } from './chart.ts'
import type { Section } from './contender.ts'
import type { Absence } from './entrants.ts'
import type { Figures, Plan } from './rounds.ts'
import { median, percentile } from './statistics.ts'

export interface Run {
  command: string
  plan: Plan
  postgres: { version: string; settings: Record<string, string> }
  figures: Figures[]
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

/** One line per peer and measure: our figure divided by the peer's, in process and over HTTP. */
export function ratioLines(figures: Figures[]): string[] {
  const isOurs = ({ name }: Figures) => name.startsWith(ours)
  const peers = figures.filter(figure => !isOurs(figure))
  return figures.filter(isOurs).flatMap(own =>
    Object.entries(measures).flatMap(([measure, { better, of }]) =>
      peers.map(peer => {
        const ratio = (of(own) / of(peer)).toFixed(better === 'lower' ? 2 : 1)
        const note = better === 'lower' ? ' (lower is better)' : ''
        return `${own.name} ${measure} vs ${peer.name}: ${ratio}x${note}`
      }),
    ),
  )
}

/** The figures of everyone, with the least and the most of their rounds. */
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
  await writeFile(join(folder, 'results.svg'), chart(run.figures))
  await writeFile(join(folder, 'RESULTS.md'), markdown(run))
}

function markdown(run: Run): string {
  const { plan, figures, absences } = run
  const lines = ratioLines(figures)
  const parts = [
    '# Results',
    `Written by \`${run.command}\` on ${new Date().toISOString().slice(0, 10)}. Ratios hold where times do not: all ` +
      'contenders ran in turn, in the same process, on the same Node and the same PostgreSQL.',
    '![Tasks per second and latency of each contender](results.svg)',
    figuresTable(figures),
    `Medians of ${figures[0]?.drain.length ?? 0} rounds of ${whole(plan.tasks)} tasks, with the least and the most; ` +
      `latency from ${whole(figures[0]?.latency.length ?? 0)} single tasks on idle workers.`,
    lines.length > 0 ? `\`\`\`\n${lines.join('\n')}\n\`\`\`` : '',
    ...absences.map(({ name, why }) => `Left out: ${name} (${why}).`),
    ...run.sections.flatMap(({ title, markdown: text }) => [`## ${title}`, text.trim()]),
    '## What is measured',
    definitions,
    '## Machine and versions',
    table(['', ''], machine(run)),
    '## Settings',
    table(
      ['', ''],
      figures.map(({ name, settings }) => [name, settings]),
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

function machine({ postgres, figures }: Run): string[][] {
  const processors = cpus()
  const settings = Object.entries(postgres.settings).map(([name, value]) => `${name} = ${value}`)
  return [
    ['processor', `${processors[0]?.model ?? 'unknown'}, ${processors.length} cores`],
    ['memory', `${Math.round(totalmem() / 2 ** 30)} GB`],
    ['system', `${type()} ${release()} ${arch()}`],
    ['Node', process.version],
    ['PostgreSQL', `${postgres.version} (${settings.join(', ')})`],
    ...figures.map(({ name, version }) => [name, version]),
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

/** For measures too: they show their figures in tables like these. */
export function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

function rate(values: number[]): string {
  return `${whole(median(values))} (${whole(Math.min(...values))}–${whole(Math.max(...values))})`
}

export function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}

export function milliseconds(value: number): string {
  return `${value.toFixed(1)} ms`
}

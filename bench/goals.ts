// The goals for speed, each with the figures that it is compared with.

import type { Figure } from './contender.ts'
import { table } from './markdown.ts'

/** Reads a figure by its name; NaN if it was not measured. */
type Read = (name: string) => number

interface Goal {
  what: string
  /** The result in the unit of the goal. */
  result(read: Read): string
  goal: string
  isMet(read: Read): boolean
}

const peers = ['bullmq', 'graphile-worker', 'graphile-worker-tuned', 'pg-boss']
const embedded = ['enqueue', 'drain', 'submitted', 'end-to-end']
const large = ['claim', 'enqueue', 'stage', 'list']

const goals: Goal[] = [
  {
    what: 'one at a time over HTTP, 8 claimers: CPU per task, server + PostgreSQL',
    result: read => `${ms(read('one-at-a-time.8.server'))} + ${ms(read('one-at-a-time.8.postgres'))}`,
    goal: '≤ 1 ms in all',
    isMet: read => read('one-at-a-time.8.server') + read('one-at-a-time.8.postgres') <= 1,
  },
  {
    what: 'one at a time over HTTP, 64 claimers: the same',
    result: read => `${ms(read('one-at-a-time.64.server'))} + ${ms(read('one-at-a-time.64.postgres'))}`,
    goal: '≤ 0.5 ms in all',
    isMet: read => read('one-at-a-time.64.server') + read('one-at-a-time.64.postgres') <= 0.5,
  },
  {
    what: 'one at a time over HTTP: tasks/s, 8 and 64 claimers, with a light client',
    result: read => `${n(read('one-at-a-time.8.rate'))}/s, ${n(read('one-at-a-time.64.rate'))}/s`,
    goal: '≥ 3× of 300/s',
    isMet: read => read('one-at-a-time.8.rate') >= 900,
  },
  {
    what: 'one at a time through a dialect (Jobnik) vs our own routes',
    result: read => ratio(read('dialects.jobnik.rate') / read('dialects.own.rate')),
    goal: '≥ 0.9×',
    isMet: read => read('dialects.jobnik.rate') / read('dialects.own.rate') >= 0.9,
  },
  {
    what: 'Falconeri dialect: server CPU per datum',
    result: read => ms(read('dialects.falconeri.server')),
    goal: '≤ 3 ms',
    isMet: read => read('dialects.falconeri.server') <= 3,
  },
  {
    what: 'Jobnik loop: server + PostgreSQL CPU per task',
    result: read => ms(read('dialects.jobnik.server') + read('dialects.jobnik.postgres')),
    goal: '≤ 3 ms',
    isMet: read => read('dialects.jobnik.server') + read('dialects.jobnik.postgres') <= 3,
  },
  {
    what: 'enqueue → started, idle, in process: p50 vs graphile-worker; p99',
    result: read =>
      `${ms(read('pawl.latency-p50'))} = ${ratio(read('pawl.latency-p50') / read('graphile-worker.latency-p50'))}; ` +
      ms(read('pawl.latency-p99')),
    goal: '≤ 1×; p99 < 10 ms',
    isMet: read => read('pawl.latency-p50') <= read('graphile-worker.latency-p50') && read('pawl.latency-p99') < 10,
  },
  {
    what: 'enqueue → started, idle, over HTTP: p50 (p99)',
    result: read => `${ms(read('pawl-http.latency-p50'))} (${ms(read('pawl-http.latency-p99'))})`,
    goal: '≤ 3.5 ms',
    isMet: read => read('pawl-http.latency-p50') <= 3.5,
  },
  versusTuned('drain over HTTP, 4 workers, vs tuned graphile-worker on the database', 'pawl-http.drain', 1),
  versusTuned('enqueue over HTTP vs the same', 'pawl-http.enqueue', 1),
  versusTuned('drain in process vs tuned graphile-worker', 'pawl.drain', 1.5),
  {
    what: 'enqueue in bulk vs the fastest peer',
    result: read => ratio(read('pawl.enqueue') / fastestEnqueue(read)),
    goal: '≥ 2×',
    isMet: read => read('pawl.enqueue') / fastestEnqueue(read) >= 2,
  },
  {
    what: 'drain while a snapshot is pinned for 3 min',
    result: read => `${n(read('pinned-snapshot.share'))} %`,
    goal: '≥ 90 %',
    isMet: read => read('pinned-snapshot.share') >= 90,
  },
  {
    what: 'embedded store, in process: enqueue; drain; submit of 3-stage jobs; those jobs end to end',
    result: read => embedded.map(name => `${n(read(`embedded.${name}`))}/s`).join('; '),
    goal: '≥ 40,000/s; ≥ 19,500/s; ≥ 300/s; ≥ 500/s',
    isMet: read => [40_000, 19_500, 300, 500].every((least, index) => read(`embedded.${embedded[index]}`) >= least),
  },
  {
    what: 'embedded store, one at a time over HTTP: tasks/s; CPU per task',
    result: read => `${n(read('embedded.one-at-a-time'))}/s; ${ms(read('embedded.one-at-a-time.cpu'))}`,
    goal: '≥ 300/s; ≤ 3 ms',
    isMet: read => read('embedded.one-at-a-time') >= 300 && read('embedded.one-at-a-time.cpu') <= 3,
  },
  {
    what: 'command over a file: overhead',
    result: read => ms(read('files.overhead')),
    goal: '≤ 3 ms',
    isMet: read => read('files.overhead') <= 3,
  },
  {
    what: 'jobs with 3 stages of one task: submitted; end to end',
    result: read => `${n(read('small-jobs.submitted'))}/s; ${n(read('small-jobs.end-to-end'))}/s`,
    goal: '1,000 jobs/s end to end',
    isMet: read => read('small-jobs.end-to-end') >= 1000,
  },
  {
    what: 'very many ended tasks (10,000,000; in a quick run 50,000) vs an empty store: claim, enqueue, stage read, list',
    result: read => large.map(name => ratio(read(`large-store.${name}`))).join(', '),
    goal: '≤ 1.2× each',
    isMet: read => large.every(name => read(`large-store.${name}`) <= 1.2),
  },
  {
    what: 'retention vs drain in that store',
    result: read => ratio(read('large-store.retention') / read('large-store.drain')),
    goal: '≥ 1×',
    isMet: read => read('large-store.retention') >= read('large-store.drain'),
  },
]

/** The goals that the run has measured, and a line about the others. */
export function goalsTable(figures: readonly Figure[]): string {
  const values = new Map(figures.map(({ name, value }) => [name, value]))
  const missing: string[] = []
  const rows = goals.flatMap(({ what, result, goal, isMet }) => {
    let isMissing = false
    const read = (name: string) => {
      isMissing ||= !values.has(name) && !peers.includes(name.split('.')[0]!)
      return values.get(name) ?? Number.NaN
    }
    const text = result(read)
    if (!isMissing && !text.includes('NaN') && !text.includes('Infinity'))
      return [[what, text, goal, isMet(read) ? 'yes' : 'no']]
    missing.push(what)
    return []
  })
  const note = missing.length > 0 ? `Not measured: ${missing.join(' · ')}.` : ''
  return [table(['what', 'measured', 'goal', 'met'], rows), note].join('\n\n').trim()
}

function versusTuned(what: string, name: string, least: number): Goal {
  const of = (read: Read) => read(name) / read(`graphile-worker-tuned.${name.split('.')[1]}`)
  return { what, result: read => ratio(of(read)), goal: `≥ ${least}×`, isMet: read => of(read) >= least }
}

/** Leaves out peers that did not take part. */
function fastestEnqueue(read: Read): number {
  return Math.max(...peers.map(peer => read(`${peer}.enqueue`)).filter(rate => !Number.isNaN(rate)))
}

const ms = (value: number) => `${value.toFixed(value < 10 ? 2 : 1)} ms`
const n = (value: number) => Math.round(value).toLocaleString('en-US')
const ratio = (value: number) => `${value.toFixed(2)}×`

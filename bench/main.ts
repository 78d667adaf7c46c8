// Started by run.mjs, which sees to the packages and to the right Node.

import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { type Cluster, startCluster } from '../test/harness/cluster.ts'
import type { Measure, MeasureEnv, Section } from './contender.ts'
import { type Absence, contenderNames, type Entrant, openEntrants, reasonOf } from './entrants.ts'
import { closeOwnStores } from './own-store.ts'
import { figuresTable, ratioLines, writeReport } from './report.ts'
import { type Plan, runRounds } from './rounds.ts'

const here = import.meta.dirname
const postgresSettings = { fsync: 'on', synchronous_commit: 'on', shared_buffers: '1GB', max_wal_size: '4GB' }

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    out: { type: 'string' },
  },
})
process.exitCode = await bench(values).catch(error => {
  console.error(`bench: ${reasonOf(error)}`)
  return 1
})

/** The exit code: 1 when something of ours could not be measured; a peer that cannot run is no failure. */
async function bench({ quick, only, out }: { quick: boolean; only?: string; out?: string }): Promise<number> {
  const started = Date.now()
  const plan: Plan = quick
    ? { tasks: 10_000, rounds: 3, samples: 20, deadline: started + 25_000 }
    : { tasks: 100_000, rounds: 7, samples: 100, deadline: started + 600_000 }
  const measuresEnd = started + (quick ? 50_000 : 1_800_000)
  const { contenders, measures } = choose(only)
  const cluster = await startCluster({ version: 18, settings: postgresSettings })
  let entrants: Entrant[] = []
  try {
    const [opened, absences] = await openEntrants(cluster, contenders)
    entrants = opened
    const figures = await runRounds(cluster, entrants, plan, absences)
    await closeAll(entrants)
    entrants = []
    const [sections, failures] = await runMeasures(measures, { cluster, quick, deadline: measuresEnd })

    const missing: Absence[] = [...absences, ...failures]
    for (const { title, markdown } of sections) console.log(`\n${title}\n\n${markdown.trim()}`)
    if (figures.length > 0) console.log(`\n${figuresTable(figures)}\n`)
    for (const { name, why } of missing) console.log(`left out: ${name} (${why})`)
    for (const line of ratioLines(figures)) console.log(line)
    // A part of a run is no result, and must not replace one.
    const folder = out ?? (only === undefined ? here : undefined)
    if (folder !== undefined) {
      const postgres = { version: await serverVersion(cluster), settings: postgresSettings }
      const command = ['node bench/run.mjs', ...process.argv.slice(2)].join(' ')
      await writeReport(folder, { command, plan, postgres, figures, absences: missing, sections })
    }
    return failures.length > 0 || absences.some(({ name }) => name === 'pawl') ? 1 : 0
  } finally {
    await closeAll(entrants)
    await cluster.stop()
  }
}

/** Names that nobody bears are refused, lest a slip of the pen looks like a result. */
function choose(only: string | undefined): { contenders: string[]; measures: string[] } {
  const contenders = contenderNames()
  const folder = join(here, 'measures')
  const files = existsSync(folder) ? readdirSync(folder).filter(file => file.endsWith('.ts')) : []
  const measures = files.map(file => file.slice(0, -'.ts'.length)).sort()
  if (only === undefined) return { contenders, measures }

  const names = only.split(',').map(name => name.trim())
  const all = [...contenders, ...measures]
  const unknown = names.filter(name => !all.includes(name))
  if (unknown.length > 0) throw new Error(`--only: no ${unknown.join(', ')} here; there are ${all.join(', ')}`)
  return {
    contenders: contenders.filter(name => names.includes(name)),
    measures: measures.filter(name => names.includes(name)),
  }
}

async function runMeasures(names: string[], env: MeasureEnv): Promise<[Section[], Absence[]]> {
  const sections: Section[] = []
  const failures: Absence[] = []
  for (const name of names) {
    try {
      const { measure }: { measure: Measure } = await import(`./measures/${name}.ts`)
      console.log(`measuring ${measure.name}`)
      sections.push(await measure.run(env))
    } catch (error) {
      failures.push({ name, why: reasonOf(error) })
    } finally {
      await closeOwnStores()
    }
  }
  return [sections, failures]
}

/** Closes all of them, even if one fails to close. */
async function closeAll(entrants: Entrant[]): Promise<void> {
  await Promise.allSettled(entrants.map(({ contender }) => contender.close()))
}

async function serverVersion(cluster: Cluster): Promise<string> {
  const client = new pg.Client(cluster.url)
  await client.connect()
  try {
    const { rows } = await client.query('show server_version')
    return rows[0].server_version
  } finally {
    await client.end()
  }
}

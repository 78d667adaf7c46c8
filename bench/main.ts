// Started by run.mjs, which installs the packages and chooses the version of Node.

import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type Cluster, startCluster } from '../test/harness/cluster.ts'
import type { Figure, Measure, MeasureEnv, Section } from './contender.ts'
import { measureFsync } from './disk.ts'
import { type Absence, contenderNames, type Entrant, openConnection, openEntrants, reasonOf } from './entrants.ts'
import { goalsTable } from './goals.ts'
import { drawHistory, recordRun } from './history.ts'
import { table } from './markdown.ts'
import { closeOwnStores } from './own-store.ts'
import { endProcesses } from './processes.ts'
import { printProfiles, printStatements, statementSettings } from './profile.ts'
import { comparisonFigures, figuresTable, machineRows, type Run, ratioLines, writeReport } from './report.ts'
import { type Plan, runRounds } from './rounds.ts'

const here = import.meta.dirname
const postgresSettings = { fsync: 'on', synchronous_commit: 'on', shared_buffers: '1GB', max_wal_size: '4GB' }
/** A quick run takes five minutes if nothing else runs. A busy machine must not drop a measure. */
const limitSeconds = { quick: { measure: 240, run: 1800 }, full: { measure: 600, run: 2700 } }
const closeSeconds = 30

interface Options {
  quick: boolean
  only?: string | undefined
  out?: string | undefined
  'draw-history': boolean
}

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    out: { type: 'string' },
    'draw-history': { type: 'boolean', default: false },
  },
})

/** Errors that nobody awaited, such as those of a connection whose measure has failed. They must not end the run. */
const stray: Absence[] = []
let step = 'start'
for (const event of ['unhandledRejection', 'uncaughtException'] as const) {
  process.on(event, error => {
    console.error(`during ${step}: ${reasonOf(error)}`)
    // The servers of the run are shut down while peers may still be connected.
    if (step !== 'end') stray.push({ name: step, why: `an error that nobody awaited: ${reasonOf(error)}` })
  })
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void endProcesses().finally(() => process.exit(1)))
}

const exitCode = await bench(values).catch(error => {
  console.error(`bench: ${reasonOf(error)}`)
  return 1
})
// A peer that failed may have left a timer or a connection. They must not keep the process alive.
process.exit(exitCode)

/** The exit code: 1 if a measure of ours failed. A peer that cannot run does not count. */
async function bench(options: Options): Promise<number> {
  const { quick, only, out } = options
  // A partial run must not replace the results.
  const folder = out ?? (only === undefined && !quick ? here : undefined)
  if (options['draw-history']) {
    await drawHistory(out ?? here)
    return 0
  }
  const started = Date.now()
  const plan: Plan = quick
    ? { tasks: 10_000, rounds: 2, samples: 20, deadline: started + 40_000 }
    : { tasks: 100_000, rounds: 5, samples: 140, deadline: started + 540_000 }
  const limits = quick ? limitSeconds.quick : limitSeconds.full
  const { contenders, measures } = choose(only)
  const fsync = await measureFsync()
  const profiles = process.env.PAWL_BENCH_PROFILES
  const settings = { ...postgresSettings, ...(profiles !== undefined && statementSettings) }
  const cluster = await startCluster({ version: 18, settings })
  let entrants: Entrant[] = []
  try {
    step = 'comparison'
    const [opened, absences] = await openEntrants(cluster, contenders)
    entrants = opened
    const compared = await runRounds(cluster, entrants, plan, absences)
    await closeAll(entrants)
    entrants = []
    const env = { cluster, settings: postgresSettings, quick, deadline: started + limits.run * 1000 }
    const [sections, failures] = await runMeasures(measures, env, limits.measure)
    const failed = [...failures, ...stray, ...absences.filter(({ name }) => name.startsWith('pawl'))]
    const figures: Figure[] = [...comparisonFigures(compared), ...sections.flatMap(section => section.figures ?? [])]
    const postgres = { version: await serverVersion(cluster), settings: postgresSettings }
    const command = ['node bench/run.mjs', ...process.argv.slice(2)].join(' ')
    const minutes = (Date.now() - started) / 60_000
    const missing = [...new Set([...absences, ...failed])]
    const run: Run = { command, plan, postgres, fsync, minutes, compared, figures, absences: missing, sections }
    print(run)
    if (profiles !== undefined) await printStatements(cluster)
    if (folder !== undefined) {
      await writeReport(folder, run)
      await recordRun(folder, run)
      await drawHistory(folder)
    }
    return failed.length > 0 ? 1 : 0
  } finally {
    step = 'end'
    await closeAll(entrants)
    await endProcesses()
    await cluster.stop()
    if (profiles !== undefined) printProfiles(profiles)
  }
}

function print(run: Run): void {
  for (const { title, markdown } of run.sections) console.log(`\n${title}\n\n${markdown.trim()}`)
  if (run.compared.length > 0) console.log(`\n${figuresTable(run.compared)}\n`)
  for (const line of ratioLines(run.compared)) console.log(line)
  console.log(`\n${goalsTable(run.figures)}\n`)
  console.log(table(['', ''], machineRows(run)))
  for (const { name, why } of run.absences) console.log(`left out: ${name} (${why})`)
  console.log(`${run.minutes.toFixed(1)} min`)
}

/** Unknown names are refused, because a typing error would look like a result. */
function choose(only: string | undefined): { contenders: string[]; measures: string[] } {
  const contenders = contenderNames()
  const folder = join(here, 'measures')
  const files = existsSync(folder) ? readdirSync(folder).filter(file => file.endsWith('.ts')) : []
  const measures = files.map(file => file.slice(0, -'.ts'.length)).sort()
  if (only === undefined) return { contenders, measures }

  const names = only.split(',').flatMap(name => (name.trim() === 'comparison' ? contenders : [name.trim()]))
  const all = [...contenders, ...measures]
  const unknown = names.filter(name => !all.includes(name))
  if (unknown.length > 0) {
    throw new Error(`--only: unknown ${unknown.join(', ')}; known are comparison, ${all.join(', ')}`)
  }
  return {
    contenders: contenders.filter(name => names.includes(name)),
    measures: measures.filter(name => names.includes(name)),
  }
}

async function runMeasures(names: string[], env: MeasureEnv, seconds: number): Promise<[Section[], Absence[]]> {
  const sections: Section[] = []
  const failures: Absence[] = []
  for (const name of names) {
    step = name
    const began = Date.now()
    try {
      if (began > env.deadline) throw new Error('no time was left')
      const { measure }: { measure: Measure } = await import(`./measures/${name}.ts`)
      sections.push(await within(seconds, measure.run(env)))
    } catch (error) {
      failures.push({ name, why: reasonOf(error) })
      console.error(error)
    } finally {
      await endProcesses()
      await within(closeSeconds, closeOwnStores()).catch(error => console.error(`closing after ${name}:`, error))
      console.log(`${name}: ${((Date.now() - began) / 1000).toFixed(0)} s`)
    }
  }
  return [sections, failures]
}

/** A measure that hangs fails, and the run continues. */
async function within<T>(seconds: number, work: Promise<T>): Promise<T> {
  const limit = new AbortController()
  const expiry = sleep(seconds * 1000, undefined, { signal: limit.signal }).then(() => {
    throw new Error(`it took more than ${seconds} s`)
  })
  expiry.catch(() => {})
  work.catch(() => {})
  try {
    return await Promise.race([work, expiry])
  } finally {
    limit.abort()
  }
}

/** Closes all of them, even if one fails to close or never does. */
async function closeAll(entrants: Entrant[]): Promise<void> {
  await Promise.allSettled(entrants.map(({ contender }) => within(closeSeconds, contender.close())))
}

async function serverVersion(cluster: Cluster): Promise<string> {
  const client = await openConnection(cluster.url)
  try {
    const { rows } = await client.query('show server_version')
    return rows[0].server_version
  } finally {
    await client.end()
  }
}

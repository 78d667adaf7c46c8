// --profile: where the time of a run goes. Node writes a processor profile for each process, PostgreSQL counts its statements.

import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Cluster } from '../test/harness/cluster.ts'
import { openConnection } from './entrants.ts'
import { table, whole } from './markdown.ts'

const partsShown = 14
const statementsShown = 14
/** A process that did less shows nothing. */
const leastMs = 200

/** The settings of a PostgreSQL that counts its statements. */
export const statementSettings = {
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.track_planning': 'on',
  'pg_stat_statements.max': '10000',
}

const folder = process.env.PAWL_BENCH_PROFILES
let programs = 0

/** The flags with which Node profiles a program, if the run is profiled. */
export function profileFlags(program: string): string[] {
  if (folder === undefined) return []
  const own = join(folder, `${program.replace(/\W+/g, '-')}-${++programs}`)
  mkdirSync(own, { recursive: true })
  return ['--cpu-prof', '--cpu-prof-interval=500', `--cpu-prof-dir=${own}`]
}

export async function printStatements(cluster: Cluster): Promise<void> {
  const client = await openConnection(cluster.url)
  try {
    await client.query('create extension if not exists pg_stat_statements')
    const { rows } = await client.query(
      `select calls::int, rows::int, total_exec_time as exec, total_plan_time as plan, query
         from pg_stat_statements order by total_exec_time + total_plan_time desc limit $1`,
      [statementsShown],
    )
    const lines = rows.map(({ calls, rows, exec, plan, query }) => [
      String(query).replace(/\s+/g, ' ').slice(0, 90).replaceAll('|', '/'),
      whole(calls),
      (rows / calls).toFixed(1),
      `${whole(exec)} ms`,
      `${(exec / calls).toFixed(3)} ms`,
      `${whole(plan)} ms`,
    ])
    console.log(`\nStatements\n\n${table(['', 'calls', 'rows each', 'execution', 'each', 'planning'], lines)}`)
  } finally {
    await client.end()
  }
}

interface Profile {
  nodes: { id: number; callFrame: { functionName: string; url: string } }[]
  samples: number[]
  timeDeltas: number[]
}

/** For each thread, the shares of its processor time by the part of the code that runs. */
export function printProfiles(profiles: string): void {
  for (const program of readdirSync(profiles).sort()) {
    const files = readdirSync(join(profiles, program)).filter(file => file.endsWith('.cpuprofile'))
    for (const file of files) {
      // CPU.date.time.process.thread.number.cpuprofile
      const thread = file.split('.')[4]
      const parts = partsOf(JSON.parse(readFileSync(join(profiles, program, file), 'utf8')))
      const busy = [...parts.values()].reduce((sum, ms) => sum + ms, 0)
      if (busy < leastMs) continue
      const most = [...parts].sort((one, other) => other[1] - one[1]).slice(0, partsShown)
      const lines = most.map(([part, ms]) => [part, `${whole(ms)} ms`, `${((ms / busy) * 100).toFixed(1)} %`])
      console.log(`\n${program}, thread ${thread}: ${whole(busy)} ms\n\n${table(['', 'processor', 'share'], lines)}`)
    }
  }
  console.log(`\nProfiles for Chrome's developer tools: ${profiles}`)
}

function partsOf({ nodes, samples, timeDeltas }: Profile): Map<string, number> {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
  const parts = new Map<string, number>()
  for (const [index, id] of samples.entries()) {
    const { functionName, url } = frames.get(id)!
    const part = partOf(functionName, url)
    // The time of a sample is that since the one before.
    if (part !== '(idle)') parts.set(part, (parts.get(part) ?? 0) + (timeDeltas[index + 1] ?? 0) / 1000)
  }
  return parts
}

/** `pg`, `node:http`, `pawl engine/tasks` or `(garbage collector)`. */
function partOf(functionName: string, url: string): string {
  if (url === '') return functionName.startsWith('(') ? functionName : `native ${functionName}`
  if (url.startsWith('wasm:')) return 'PostgreSQL in WebAssembly'
  if (url.startsWith('node:')) return url.split('/').slice(0, 2).join('/')
  const inPackage = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)
  if (inPackage !== null) return inPackage[1]!
  const inPawl = /\/dist\/((?:[\w-]+\/){0,2})[^/]*$/.exec(url)
  return inPawl === null ? 'bench' : `pawl ${inPawl[1]!.replace(/\/$/, '')}`
}

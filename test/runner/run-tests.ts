/** `npm test` and `npm run test:all`, once everything is compiled: chooses the files, runs them, and sums up. */
import { readdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { type DatabaseName, everyDatabase, otherDatabases, startServers } from '../harness/databases.ts'
import { type Run, type RunResult, runPool } from './pool.ts'
import { failureLines, fileLine, isGood, longestLines, titleList, totalLine } from './summary.ts'
import { tierOf } from './tiers.ts'

export interface Wanted {
  readonly words: readonly string[]
  readonly isAll: boolean
  readonly database: DatabaseName | undefined
  readonly seed: number
  readonly processes: number
}

/** Reads the arguments of scripts/test.mjs. */
export function readWanted(args: readonly string[]): Wanted {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      all: { type: 'boolean' },
      database: { type: 'string' },
      seed: { type: 'string' },
      processes: { type: 'string' },
    },
  })
  const database = everyDatabase.find(name => name === values.database || name.replace(' ', '-') === values.database)
  if (values.database !== undefined && database === undefined) {
    throw new Error(`--database must be one of ${everyDatabase.map(name => name.replace(' ', '-')).join(', ')}.`)
  }
  const isAll = values.all === true
  const seed = values.seed ?? (isAll ? Math.floor(Math.random() * 2 ** 31) : 1)
  // Many tests wait for something, so there is one process more than there are cores.
  const processes = Number(values.processes ?? availableParallelism() + 1)
  return { words: positionals, isAll, database, seed: Number(seed), processes }
}

/** Files in the order in which they start: long ones first, so that none runs alone at the end. */
function chooseFiles(build: string, { words, isAll }: Wanted): string[] {
  const files = readdirSync(build, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && entry.name.endsWith('.test.js'))
    .map(entry => relative(build, join(entry.parentPath ?? entry.path, entry.name)).replace(/\.js$/, ''))
    .sort()
  // Naming files chooses them, whatever their tier.
  const chosen = words.length > 0 ? files.filter(file => words.some(word => file.includes(word))) : files
  const quick = chosen.filter(file => tierOf(file) === 'quick')
  const full = chosen.filter(file => tierOf(file) === 'all')
  return words.length > 0 || isAll ? [...full, ...quick] : quick
}

/** Returns whether everything passed. */
export async function runTests(build: string, wanted: Wanted): Promise<boolean> {
  const { words, isAll, database = 'postgres 18', seed, processes } = wanted
  const files = chooseFiles(build, wanted)
  if (files.length === 0) throw new Error(`No test file's path contains ${words.join(' or ')}.`)
  const servers = await startServers()
  Object.assign(process.env, servers.env, { PAWL_TEST_SEED: String(seed) })
  const began = performance.now()
  const ended: RunResult[] = []
  const others = (run: RunResult): readonly Run[] => {
    const isRepeated = isAll && wanted.database === undefined && run.database === 'postgres 18'
    if (!isRepeated || !run.usesDatabase || tierOf(run.file) !== 'quick') return []
    return otherDatabases(run.file).map(name => ({ file: run.file, database: name }))
  }
  console.log(`${files.length} files, seed ${seed}`)
  await runPool(
    files.map(file => ({ file, database })),
    {
      build: resolve(build),
      processes,
      sourceMaps: words.length > 0,
      fileSeconds: 900,
      onEnd(run) {
        ended.push(run)
        const notes = words.length > 0 && isGood(run) ? run.notes.map(note => `  ${note}`) : []
        for (const line of [fileLine(run), ...failureLines(run), ...notes]) console.log(line)
        return others(run)
      },
    },
  )
  await servers.stop()
  writeFileSync(join(build, 'tests.txt'), titleList(ended))
  console.log('')
  if (words.length === 0) for (const line of longestLines(ended)) console.log(line)
  // Printed a second time, because many tools keep only the end of a long log.
  for (const run of ended) if (!isGood(run)) for (const line of [fileLine(run), ...failureLines(run)]) console.log(line)
  const minutes = ((performance.now() - began) / 60_000).toFixed(1)
  console.log(`${minutes} minutes. Seed ${seed}: add \`--seed ${seed}\` to repeat what was left to chance.`)
  console.log(totalLine(ended))
  return ended.every(isGood)
}

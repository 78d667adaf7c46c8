// `npm test`: type check, lint and format, compile, then every test file on real databases.
// Arguments narrow it down: `npm test -- store` runs the files whose path holds "store".
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const wanted = process.argv.slice(2)
process.chdir(root)

if (wanted.length === 0) step('biome', ['node_modules/@biomejs/biome/bin/biome', 'check', '.'])
const build = process.env.PAWL_TEST_BUILD ?? 'build'
rmSync(build, { recursive: true, force: true })
step('tsc', ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.test.json', '--outDir', build])
if (wanted.length === 0) step('tsc', ['node_modules/typescript/bin/tsc', '-p', 'dashboard/tsconfig.json', '--noEmit'])

/**
 * Long ones that are for the same, as far as that goes: one of each pair is run today, the other tomorrow. All of them:
 * PAWL_TEST_EFFORT=1 npm test
 */
const byTurns = [
  ['faults/files-chaos', 'faults/fleet'],
  ['model/graphs', 'model/model'],
  ['cli/showing', 'cli/datums'],
  ['cli/words', 'cli/pipeline-example'],
  ['cli/pipelines', 'cli/config'],
  ['cli/conformance', 'conformance/suite'],
  ['dialects/jsm-cycle', 'dialects/falconeri-worker'],
  ['dialects/mixed', 'dialects/jsm-acceptance'],
  ['stories/claimers', 'stories/last-two'],
  ['http/events', 'http/bad-network'],
  ['files/bad-places', 'files/contract'],
]
const turnFile = name => join(build, 'test', `${name}.test.js`)
const unknown = byTurns.flat().filter(name => !existsSync(turnFile(name)))
if (unknown.length > 0) throw new Error(`There is no test file ${unknown.join(', ')}.`)
const today = Math.floor(Date.now() / 86_400_000) % 2
const takesAll = wanted.length > 0 || Number(process.env.PAWL_TEST_EFFORT) >= 1
const another = takesAll ? [] : byTurns.map(pair => turnFile(pair[1 - today]))

/** Begun last, it would be the only one at work for minutes. */
const isLongest = file => file.endsWith('pages.test.js')
const files = readdirSync(build, { recursive: true, withFileTypes: true })
  .filter(entry => entry.isFile() && entry.name.endsWith('.test.js'))
  .map(entry => join(entry.parentPath ?? entry.path, entry.name))
  .filter(file => wanted.length === 0 || wanted.some(word => relative(build, file).includes(word)))
  .filter(file => !another.includes(file))
  .sort((one, other) => isLongest(other) - isLongest(one) || (one < other ? -1 : 1))
if (files.length === 0) {
  console.error(`No test file's path holds ${wanted.join(' or ')}.`)
  process.exit(1)
}

const { startServers } = await import(pathToFileURL(resolve(build, 'test/harness/databases.js')).href)
const servers = await startServers()
// Maps cost each of hundreds of processes a tenth of a second: they are for whoever works on a few files.
Object.assign(process.env, servers.env, wanted.length > 0 && { NODE_OPTIONS: '--enable-source-maps' })
let passed = 0
let failed = 0
const seconds = new Map()
const tests = run({
  files: files.map(file => join(root, file)),
  // Many tests wait for something, so one more than there are cores.
  concurrency: availableParallelism() + 1,
  timeout: 600_000,
})
tests.on('test:pass', ({ details, nesting, file }) => {
  if (details.type !== 'suite' && nesting === 0) passed += 1
  count(file, details, nesting)
})
tests.on('test:fail', ({ details, nesting, file }) => {
  if (details.type !== 'suite' && nesting === 0) failed += 1
  count(file, details, nesting)
})
tests.compose(spec).pipe(process.stdout)
await new Promise(resolve => tests.on('end', resolve))
await servers.stop()
await new Promise(resolve => process.stdout.write('', resolve))
if (another.length > 0) console.log(`Tomorrow, or with PAWL_TEST_EFFORT=1: ${another.join(', ')}.`)
if (wanted.length === 0) console.log(`The longest: ${longest()}.`)
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 && passed > 0 ? 0 : 1)

function count(file, { duration_ms }, nesting) {
  if (nesting === 0 && file) seconds.set(file, (seconds.get(file) ?? 0) + duration_ms / 1000)
}

/** Where the time goes, for whoever has to make room. */
function longest() {
  const files = [...seconds].sort(([, one], [, other]) => other - one).slice(0, 12)
  return files.map(([file, each]) => `${relative(resolve(build), file)} ${Math.round(each)} s`).join(', ')
}

function step(name, args) {
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' })
  // While a single file is worked on, a fault elsewhere is shown and does not stop it.
  if (status === 0 || wanted.length > 0) return
  console.error(`${name} found something to mend (\`npm run fix\` mends what a machine can).`)
  console.log('0 passed, 1 failed')
  process.exit(1)
}

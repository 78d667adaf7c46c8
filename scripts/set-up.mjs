// Prepares a fresh clone: installs the packages in the lock file, then compiles. Plain JavaScript, because it runs before
// anything is installed. Skips steps that are up to date, so that a second start is quick.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const at = name => join(root, name)

const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 20 || (major === 20 && minor < 19)) {
  fail(`Pawl needs Node 20.19 or newer; this is ${process.version}. See https://nodejs.org/en/download.`)
}

const lock = createHash('sha256')
  .update(readFileSync(at('package-lock.json')))
  .digest('hex')
const mark = at('node_modules/.pawl-installed')
if (!existsSync(mark) || readFileSync(mark, 'utf8') !== lock) {
  say('Installing packages (only once; about half a minute) …')
  // Install scripts may be blocked and are not needed; NODE_ENV=production must not leave the compiler out.
  run('npm', ['ci', '--ignore-scripts', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'])
  writeFileSync(mark, lock)
}

const isBuild = process.argv.includes('--build')
const compiled = at('dist/cli/main.js')
const mustCompile = isBuild || newest(at('src')) > fileTime(compiled)
if (mustCompile) {
  say('Compiling …')
  const began = new Date()
  // Output of source files that no longer exist must not be packed.
  if (isBuild) rmSync(at('dist'), { recursive: true, force: true })
  run(process.execPath, [at('node_modules/typescript/bin/tsc'), '-p', at('tsconfig.build.json')])
  // A source that was saved meanwhile may have been read before. It counts as newer.
  utimesSync(compiled, began, began)
}
if (mustCompile || fileTime(at('package.json')) > fileTime(at('dist/require/package.json'))) {
  run(process.execPath, [at('scripts/make-require-types.mjs')])
}
run(process.execPath, [at('scripts/make-empty-store.mjs')])
if (isBuild || newest(at('docs')) > fileTime(at('dist/docs-pages.json'))) {
  run(process.execPath, [at('scripts/make-docs-pages.mjs')])
}
// The page is made of the tables in src/ too.
if (isBuild || Math.max(newest(at('src')), newest(at('dashboard'))) > newest(at('dist/dashboard'))) {
  say('Building the dashboard …')
  const vite = [
    at('node_modules/vite/bin/vite.js'),
    'build',
    '--config',
    at('dashboard/vite.config.ts'),
    '--logLevel',
    'error',
  ]
  run(process.execPath, vite)
}

/** The time of the latest change in a folder; 0 if there is none. */
function newest(folder) {
  if (!existsSync(folder)) return 0
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true })
  const times = entries
    .filter(entry => entry.isFile())
    .map(entry => statSync(join(entry.parentPath ?? entry.path, entry.name)).mtimeMs)
  return Math.max(0, ...times)
}

/** The time of the latest change of a file; 0 if there is none. */
function fileTime(file) {
  return existsSync(file) ? statSync(file).mtimeMs : 0
}

function run(command, args) {
  const shell = process.platform === 'win32'
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], shell })
  if (status !== 0) fail(`\`${[command, ...args].join(' ')}\` did not succeed${error ? `: ${error.message}` : ''}.`)
}

function say(text) {
  process.stderr.write(`${text}\n`)
}

function fail(text) {
  say(text)
  process.exit(1)
}

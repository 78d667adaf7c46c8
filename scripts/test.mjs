// `npm test` and, with --all, `npm run test:all`: lint, type check, compile, then the tests. CONTRIBUTING.md explains the
// tiers and the arguments.
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

process.chdir(fileURLToPath(new URL('..', import.meta.url)))
const build = process.env.PAWL_TEST_BUILD ?? 'build'
const isWhole = process.argv.slice(2).every(word => word.startsWith('--'))

if (isWhole) step('biome', ['node_modules/@biomejs/biome/bin/biome', 'check', '.'])
rmSync(build, { recursive: true, force: true })
step('tsc', ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.test.json', '--outDir', build])
if (isWhole) step('tsc', ['node_modules/typescript/bin/tsc', '-p', 'dashboard/tsconfig.json', '--noEmit'])

const { readWanted, runTests } = await import(pathToFileURL(resolve(build, 'test/runner/run-tests.js')).href)
const isGood = await runTests(build, readWanted(process.argv.slice(2)))
await new Promise(resolve => process.stdout.write('', resolve))
process.exit(isGood ? 0 : 1)

function step(name, args) {
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' })
  // While one file is being worked on, an error in another is shown but does not stop the run.
  if (status === 0 || !isWhole) return
  console.error(`${name} found errors. \`npm run fix\` fixes formatting and simple lint errors.`)
  console.log('0 passed, 1 failed')
  process.exit(1)
}

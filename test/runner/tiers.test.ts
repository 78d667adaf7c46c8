import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { readWanted } from './run-tests.ts'
import { runsAlone, tierOf } from './tiers.ts'

const root = findRoot(import.meta.dirname)
const read = (path: string) => readFileSync(join(root, path), 'utf8')

test('every promise in the README names its test in test/promises, which npm test runs', () => {
  const [, table = ''] = /## What Pawl promises\n\n(.*?)\n\n/s.exec(read('README.md')) ?? []
  const rows = table.split('\n').slice(2)
  const named = rows.map(row => /\]\((test\/promises\/[\w-]+\.test\.ts)\)/.exec(row)?.[1])
  assert.ok(rows.length >= 6 && !named.includes(undefined), 'a row names no test')
  const files = readdirSync(join(root, 'test/promises')).map(name => `test/promises/${name}`)
  assert.deepEqual([...new Set(named)].sort(), files.sort())
  assert.deepEqual(new Set(files.map(tierOf)), new Set(['quick']))
})

test('a test file in a folder that belongs to no tier is refused, not left out', () => {
  assert.throws(() => tierOf('test/elsewhere/a.test'), /is in no tier/)
  for (const file of Object.keys(runsAlone)) assert.ok(existsSync(join(root, `${file}.ts`)), `there is no ${file}`)
})

test('npm test leaves nothing to chance; npm run test:all takes the seed that it is given, or a new one', () => {
  assert.equal(readWanted([]).seed, 1)
  assert.equal(readWanted(['--all', '--seed', '77']).seed, 77)
  assert.notEqual(readWanted(['--all']).seed, readWanted(['--all']).seed)
})

test('tests choose nothing by the date, and throw only dice that can be thrown again', () => {
  const files = ['test', 'src'].flatMap(folder =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map(name => join(folder, name)),
  )
  const tests = files.filter(file => /\.test\.ts$/.test(file) || /^test\/.*\.ts$/.test(file))
  const chooses = /Math\.random\(\)|86_?400_?000\) %|getDay\(|getDate\(/
  // The model calls the same source of random numbers as the product.
  const allowed = ['runner/run-tests', 'runner/tiers.test', 'model/steps', 'model/worker-steps'].map(
    name => `test/${name}.ts`,
  )
  assert.deepEqual(
    tests.filter(file => !allowed.includes(file) && chooses.test(read(file))),
    [],
  )
})

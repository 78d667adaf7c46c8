/** docs/worker-protocol.md is true: its examples are run, and its tables are those of the code. */
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { allChecks } from '../../src/conformance/run.ts'
import { outcomes, reasonCodes, steps } from '../../src/kernel/decide.ts'
import { problems } from '../../src/kernel/problem.ts'
import { settledFields, syncFields } from '../../src/protocol/tasks/sync.ts'
import { served } from '../harness/served.ts'

const page = readFileSync(join(rootOf(import.meta.dirname), 'docs/worker-protocol.md'), 'utf8')
const missing = ['curl', 'jq'].filter(name => spawnSync(name, ['--version']).error !== undefined)
const skip = missing.length > 0 && `this machine has no ${missing.join(' and no ')}`

test('the curl examples of the protocol page answer what the page says', { skip }, async t => {
  const { server } = await served(t)
  const examples = [...page.matchAll(/```sh\n(.*?)```\s+```json\n(.*?)```/gs)]
  assert.ok(examples.length >= 5, 'the examples are there')
  // One shell for all of them, because later examples use variables of earlier ones.
  const mark = '---- the next example ----'
  const script = examples.map(([, code]) => code).join(`\necho; echo '${mark}'\n`)
  const { stdout } = await promisify(execFile)('sh', ['-eu', '-c', script], {
    env: { ...process.env, PAWL_SERVER: server.url },
    timeout: 45_000,
  })
  const answers = stdout.split(mark).map(text => JSON.parse(text))
  assert.equal(answers.length, examples.length)
  for (const [index, [, , shown]] of examples.entries()) {
    const expected = JSON.parse(shown!)
    assert.deepEqual(masked(answers[index], expected), expected)
  }
})

test('the protocol page names what a sync may say, and nothing else', () => {
  const { worker: _, ...fields } = syncFields
  assert.deepEqual(firstColumn('The request').sort(), Object.keys(fields).sort())
  assert.deepEqual(firstColumn('Outcomes'), [...outcomes])
  const words = new Set([...section('Outcomes').matchAll(/[a-zA-Z_]+/g)].map(([word]) => word))
  const named = [
    ...reasonCodes,
    ...steps,
    ...Object.keys(settledFields).filter(name => name !== 'id' && name !== 'epoch'),
  ]
  assert.deepEqual(
    named.filter(word => !words.has(word) && word !== 'outcome'),
    [],
  )
})

test('the refusals of the protocol page are problems that exist', () => {
  const codes = [...section('Refusals').matchAll(/`([A-Z_]+)`/g)].map(([, code]) => code!)
  assert.deepEqual(
    codes.filter(code => !Object.hasOwn(problems, code)),
    [],
  )
})

test('the protocol page lists the checks of the suite as they are', () => {
  const rows = allChecks.map(({ id, title, level }) => `| \`${id}\` | ${level} | ${title} |`)
  const listed = section('The conformance suite')
    .split('\n')
    .filter(line => /^\| `[^`]+` \| (required|advised) \|/.test(line))
  assert.deepEqual(listed, rows)
})

/** The answer as the page shows it: "…" stands for any text, and a number with a fraction for any number. */
function masked(answer: unknown, shown: unknown): unknown {
  if (shown === '…' && typeof answer === 'string') return shown
  if (typeof shown === 'number' && !Number.isInteger(shown) && typeof answer === 'number') return shown
  if (Array.isArray(answer) && Array.isArray(shown)) return answer.map((item, index) => masked(item, shown[index]))
  if (isObject(answer) && isObject(shown)) {
    return Object.fromEntries(Object.entries(answer).map(([name, value]) => [name, masked(value, shown[name])]))
  }
  return answer
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

function section(heading: string): string {
  const [, after] = page.split(`## ${heading}\n`)
  assert.ok(after, `the page has a section "${heading}"`)
  return after.split('\n## ')[0]!
}

function firstColumn(heading: string): string[] {
  return [...section(heading).matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name!)
}

function rootOf(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : rootOf(dirname(folder))
}

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import type { Problem } from '../kernel/problem.ts'
import type { Issue } from './faults.ts'
import { parseJobSpec } from './parse-job-spec.ts'

function issuesOf(text: string): Issue[] {
  try {
    parseJobSpec(text)
    return []
  } catch (error) {
    return (error as Problem).details.issues as Issue[]
  }
}

test('the same spec in YAML, in JSON and as an object gives the same plan', () => {
  const spec = {
    name: 'job',
    input: { n: 1, on: 'yes' },
    stages: [{ name: 'a', task: 't', payloads: [1, 'two', null] }],
  }
  const yaml = `
name: job
input: { n: 1, on: yes }
stages:
  - name: a
    task: t
    payloads: [1, two, null]
`
  const plan = parseJobSpec(spec)
  assert.deepEqual(parseJobSpec(yaml), plan)
  assert.deepEqual(parseJobSpec(JSON.stringify(spec)), plan)
  assert.deepEqual(parseJobSpec(JSON.stringify(spec, null, '\t')), plan)
})

test('an alias stands for what it names', () => {
  const plan = parseJobSpec(
    'name: job\nstages: [{ name: a, task: t, retry: &r { attempts: 2 } }, { name: b, task: t, retry: *r }]',
  )
  assert.deepEqual(
    plan.stages.map(({ settings }) => settings),
    [{ attempts: 2 }, { attempts: 2 }],
  )
})

test('what is not YAML is refused with line and column', () => {
  assert.equal(issuesOf('name: job\nstages:\n  - name: a\n   task: t')[0]?.at, 'line 4, column 1')
  assert.equal(issuesOf('{ "name": "job", "stages": [ }')[0]?.at.startsWith('line 1, column'), true)
  assert.match(issuesOf('name: *nobody')[0]?.why ?? '', /nobody/)
  assert.equal(issuesOf('name: !odd job')[0]?.at, 'line 1, column 7')
})

test('a spec with 100,000 payloads in JSON is read, however long it is', () => {
  const payloads = Array.from({ length: 100_000 }, (_, n) => ({ file: `s3://bucket/folder/${n}.pdf` }))
  const spec = { name: 'job', stages: [{ name: 'a', task: 't', payloads }] }
  assert.deepEqual(parseJobSpec(JSON.stringify(spec)).stages[0]?.payloads, payloads)
})

test('YAML that only looks like JSON is read as YAML', () => {
  assert.equal(parseJobSpec('{ name: job, stages: [] } # short').name, 'job')
})

test('a key that stands twice is refused, not read as the last', () => {
  assert.deepEqual(issuesOf('name: job\nstages: []\nname: other'), [
    { at: 'line 3, column 1', why: "the key 'name' stands twice" },
  ])
})

test('aliases that stand for billions of values are refused at once', () => {
  for (const first of ['', 'x']) {
    const levels = Array.from(
      { length: 30 },
      (_, n) => `l${n}: &l${n} [${n === 0 ? first : `*l${n - 1}, `.repeat(10)}]`,
    )
    assert.match(
      issuesOf(`name: job\nstages: []\ninput:\n  ${levels.join('\n  ')}`)[0]?.why ?? '',
      /more than 10000000 values/,
    )
  }
  assert.deepEqual(issuesOf('name: job\nstages: []\ninput: &a [*a]'), [
    { at: 'line 3, column 12', why: '*a is used inside the value that it names' },
  ])
})

test('a text that is nested too deeply or is too long is refused, not crashed on', () => {
  for (const levels of [150, 600, 20_000]) {
    assert.notDeepEqual(issuesOf(`name: job\nstages: []\ninput: ${'['.repeat(levels)}${']'.repeat(levels)}`), [])
    assert.notDeepEqual(issuesOf(`name: job\nstages: []\ninput:\n ${'- '.repeat(levels)}x`), [])
    assert.notDeepEqual(issuesOf(`name: job\nstages: []\ninput: ${'{ a: '.repeat(levels)}1${'}'.repeat(levels)}`), [])
  }
  const stairs = Array.from({ length: 600 }, (_, n) => `${' '.repeat(n)}a:`).join('\n')
  assert.match(issuesOf(`name: job\nstages: []\ninput:\n${stairs.replace(/^/gm, ' ')}`)[0]?.why ?? '', /levels deep/)
  assert.match(issuesOf(`name: ${'a'.repeat(3 * 1024 * 1024)}`)[0]?.why ?? '', /at most 2097152 characters/)
})

// Whether a process survives depends on where exactly the stack ends, so many depths are tried, in a process of their own.
test('no depth of nesting ends the process', () => {
  const program = `
    import { readYaml } from ${JSON.stringify(new URL('./read-yaml.js', import.meta.url).href)}
    for (const opening of ['[', '{ a: ', '- ', '? ', '[[{ a: '])
      for (let levels = 100; levels < 6000; levels += 13) readYaml(opening.repeat(levels))
    for (let columns = 100; columns < 2000; columns += 13)
      readYaml(Array.from({ length: columns }, (_, n) => ' '.repeat(n) + 'a:').join('\\n'))`
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
})

test('brackets in texts and comments are no levels', () => {
  const many = '[{'.repeat(500)
  const text = `name: job # ${many}\nstages: []\ninput:\n  a: "${many}"\n  b: |\n    ${many}\n  c: x${many}\n`
  assert.deepEqual(parseJobSpec(text).input, { a: many, b: `${many}\n`, c: `x${many}` })
})

test('an object of 20,000 keys and as many aliases is read, and not with each compared to each', () => {
  const many = Array.from({ length: 20_000 }, (_, n) => n)
  const keys = many.map(n => `  k${n}: &a${n} ${n}`).join('\n')
  const spec = parseJobSpec(`name: job\nstages: []\ninput:\n${keys}\n  all: [${many.map(n => `*a${n}`).join(', ')}]`)
  assert.deepEqual((spec.input as { all: unknown }).all, many)
})

test('a key that is no text, and one that is a name of JavaScript, change nothing else', () => {
  assert.equal(issuesOf('name: job\nstages: []\n? [a]\n: b')[0]?.why, 'a key must be a string')
  const { input } = parseJobSpec('name: job\nstages: []\ninput: { __proto__: { a: 1 }, 5: five }')
  assert.equal(JSON.stringify(input), '{"5":"five","__proto__":{"a":1}}')
})

test('two documents in one text are refused', () => {
  assert.notDeepEqual(issuesOf('name: job\nstages: []\n---\nname: other\nstages: []'), [])
})

/** examples/basics, as a newcomer runs them. They run what `npm test` has compiled into dist/. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { findRoot } from '../../scripts/job-schema-page.ts'

const root = findRoot(import.meta.dirname)
const folder = join(root, 'examples/basics')

const prints: Readonly<Record<string, readonly string[]>> = {
  'approval.ts': ['published: owls', 'The job succeeded'],
  'cancel.ts': ['The task is cancelled'],
  'dedupe.ts': ['While it waits: true true', 'ada is up to date', 'After its end: true succeeded'],
  'delay.ts': ['Reminder: stand up', 'The other one is queued'],
  'priority.ts': ['sent password reset', 'sent receipt', 'sent newsletter'],
  'progress.ts': [
    'attempt 1 loads a',
    'attempt 1 loads b',
    'attempt 2 loads c',
    'attempt 2 loads d',
    '{ done: 4, of: 4 }',
  ],
  'results.ts': ['6 / 3 = 2', 'It failed: Task divide (ID) is failed: cannot divide by zero'],
}

for (const [name, lines] of Object.entries(prints)) {
  test(`examples/basics/${name} prints what it promises, and ends`, { timeout: 120_000 }, async t => {
    const child = spawn(process.execPath, ['--import', 'jiti/register', join(folder, name)], { cwd: root })
    t.after(() => void child.kill('SIGKILL'))
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    assert.equal(child.exitCode, 0, `${out}${err}`)
    assert.deepEqual(
      out
        .trim()
        .replaceAll(/[0-9a-f-]{36}/g, 'ID')
        .split('\n'),
      lines,
    )
  })
}

test('every example in examples/basics is tested', () => {
  assert.deepEqual(readdirSync(folder).sort(), Object.keys(prints))
})

test('examples/README.md lists every example', () => {
  const page = readFileSync(join(root, 'examples/README.md'), 'utf8')
  const listed = [...page.matchAll(/\]\(([^)#]+)\)/g)].map(match => match[1]!)
  const files = (readdirSync(join(root, 'examples'), { recursive: true }) as string[])
    .filter(path => path.endsWith('.ts') && !path.includes('generated/'))
    .map(path => relative('.', path))
  const isListed = (path: string) => listed.includes(path) || listed.includes(`${dirname(path)}/README.md`)
  assert.deepEqual(
    files.filter(path => !isListed(path)),
    [],
  )
})

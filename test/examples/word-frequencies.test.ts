/** examples/word-frequencies, as a newcomer runs it. It runs what `npm test` has compiled into dist/. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { findRoot } from '../../scripts/job-schema-page.ts'

const root = findRoot(import.meta.dirname)
const example = join(root, 'examples/word-frequencies')

async function run(t: TestContext, ...flags: string[]): Promise<string> {
  const TMPDIR = mkdtempSync(join(tmpdir(), 'pawl-example-'))
  t.after(() => rmSync(TMPDIR, { recursive: true, force: true }))
  const env = { PATH: process.env.PATH, HOME: TMPDIR, TMPDIR }
  const child = spawn(process.execPath, [join(example, 'run.mjs'), ...flags], { cwd: TMPDIR, env })
  t.after(() => void child.kill('SIGKILL'))
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  assert.equal(child.exitCode, 0, `${out}${err}`)
  assert.ok(!existsSync(join(example, 'out')), 'it leaves nothing behind in the example')
  assert.deepEqual(
    readdirSync(TMPDIR).filter(name => name.startsWith('pawl-words-')),
    [],
    'nor elsewhere',
  )
  return out
}

/** Counts the words again, independently. */
function topTen(): string {
  const counts = new Map<string, number>()
  for (const name of readdirSync(join(example, 'texts'))) {
    const words =
      readFileSync(join(example, 'texts', name), 'utf8')
        .toLowerCase()
        .match(/[a-z]+/g) ?? []
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  const sorted = [...counts].sort(([one, n], [other, m]) => m - n || (one < other ? -1 : 1))
  return sorted
    .slice(0, 10)
    .map(([word, count]) => `${count} ${word}`)
    .join('\n')
}

for (const [place, flags] of [
  ['on local files', []],
  ['on S3', ['--s3']],
] as const) {
  test(`npm run example:words counts the words of all texts ${place}, and cleans up`, { timeout: 600_000 }, async t => {
    const out = await run(t, ...flags)
    assert.match(out, /✓ count {2}succeeded {2}3\/3/)
    assert.match(out, /✓ merge {2}succeeded {2}1\/1/)
    assert.ok(out.endsWith(`:\n${topTen()}\n`), out)
  })
}

/** examples/async-pipeline, as a newcomer runs it. It runs what `npm test` has compiled into dist/. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { findRoot } from '../../scripts/job-schema-page.ts'

const example = join(findRoot(import.meta.dirname), 'examples/async-pipeline')

test('npm run example:pipeline follows one run to its end, calls another off, and cleans up', {
  timeout: 600_000,
}, async t => {
  const TMPDIR = mkdtempSync(join(tmpdir(), 'pawl-example-'))
  t.after(() => rmSync(TMPDIR, { recursive: true, force: true }))
  const env = { PATH: process.env.PATH, HOME: TMPDIR, TMPDIR }
  const child = spawn(process.execPath, [join(example, 'run.mjs')], { cwd: TMPDIR, env })
  t.after(() => void child.kill('SIGKILL'))
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  assert.deepEqual([child.exitCode, err], [0, ''], out)
  const lines = out
    .replaceAll(/\d+ ms/g, '… ms')
    .replaceAll(/[0-9a-f-]{36}/g, 'ID')
    .split('\n')
  assert.deepEqual(lines.slice(0, 12), [
    'Started ID, which is pending.',
    '  ingest …',
    '  ingest completed, … ms {"total":20}',
    '  classify …',
    '  classify partial, … ms {"total":20,"failed":1}',
    '  neutralize …',
    '  neutralize completed, … ms {"total":25}',
    '  brief …',
    '  brief completed, … ms {"sections":5}',
    '  evaluation …',
    '  evaluation completed, … ms {"stages":4}',
    '  optimization skipped, … ms {}',
  ])
  assert.match(out, /The job is partial\.\nThe run is partial: classify: a story without a text\./)
  assert.match(out, /{"cancelled":true,"message":"Cancellation requested"}/)
  assert.match(out, /The job is cancelled\.\n$/)
  assert.match(out, / {2}optimization skipped, \d+ ms \{\}\n(.*\n)* {2}The job is cancelled/)
  assert.deepEqual(
    readdirSync(TMPDIR).filter(name => name.startsWith('pawl-pipeline-')),
    [],
    'it leaves nothing behind',
  )
})

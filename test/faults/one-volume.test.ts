/** Two containers use the same volume for their embedded store. */
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openEngine } from '../../src/engine/engine.ts'
import { startProgram } from '../harness/program.ts'
import { freshFolder, readLine } from './embedded-story.ts'
import type { EmbeddedProgram } from './programs/embedded.ts'

/** Separate process ids, network and mounts, as in a container. */
const [unshare, ...namespaces] = ['unshare', '--pid', '--net', '--mount', '--uts', '--fork', '--kill-child'] as const
const canUnshare = spawnSync(unshare, [...namespaces, 'true']).status === 0

test('a second container cannot open the volume of one that runs, which goes on and loses nothing', {
  timeout: 600_000,
  skip: !canUnshare && 'needs the right to make namespaces',
}, async t => {
  const folder = await freshFolder(t)
  const ask: EmbeddedProgram = { folder }
  const first = startProgram(t, 'faults/programs/embedded.js', ask, readLine)
  const queued = () => first.lines.flatMap(({ word, id }) => (word === 'queued' ? [id] : []))
  await first.printed('it works', () => queued().length >= 20)
  const program = fileURLToPath(new URL('./programs/embedded.js', import.meta.url))
  for (let attempt = 0; attempt < 3; attempt++) {
    const second = promisify(execFile)(unshare, [...namespaces, process.execPath, program, JSON.stringify(ask)], {
      timeout: 600_000,
      killSignal: 'SIGKILL',
    })
    await assert.rejects(second, ({ stderr }: { stderr: string }) => stderr.includes('STORE_LOCKED'))
  }
  const before = queued().length
  await first.printed('it goes on', () => queued().length >= before + 20)
  first.signal('SIGKILL')
  await first.ended
  await using engine = await openEngine({ folder })
  for (const id of queued()) assert.equal((await engine.task(id)).id, id)
  assert.deepEqual(await engine.brokenRules(), [])
})

/** The embedded store lives in the application's process and dies with it, at any moment. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { eventually } from '../harness/eventually.ts'
import { startProgram } from '../harness/program.ts'
import { freshFolder, killEmbedded, liveAndDie, readLine } from './embedded-story.ts'
import type { EmbeddedProgram } from './programs/embedded.ts'

const bounded = { timeout: 600_000 }

test(
  'an application killed 20 times loses nothing that was acknowledged, and runs nothing under two leases',
  bounded,
  t => killEmbedded(t, 20),
)

const filesIn = (folder: string) => (existsSync(folder) ? readdirSync(folder, { recursive: true }).length : 0)

/** Moments during the first set-up, which writes about a thousand files. */
const moments: Record<string, (folder: string) => boolean> = {
  'before it has written anything': folder => existsSync(join(folder, 'pawl.lock')),
  'with its first files': folder => filesIn(folder) >= 3,
  'with half of its files': folder => filesIn(folder) >= 450,
}

for (const [moment, hasCome] of Object.entries(moments)) {
  test(`an application killed in its very first start, ${moment}, starts the next time`, bounded, async t => {
    const folder = await freshFolder(t)
    const program = startProgram(t, 'faults/programs/embedded.js', { folder } satisfies EmbeddedProgram, readLine)
    await eventually(moment, () => hasCome(folder))
    program.signal('SIGKILL')
    await program.ended
    const lines = await liveAndDie(t, folder, 5)
    assert.equal(lines[0]?.word, 'open')
  })
}

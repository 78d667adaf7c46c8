/** The CLI as a user has it: a process of its own, in a folder of its own, with an environment that is known. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Program, startProcess } from './program.ts'
import { neverReuse } from './schemas.ts'

neverReuse()

const main = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url))

export interface CliResult {
  readonly code: number | null
  readonly out: string
  readonly err: string
  /** What it printed, as JSON. */
  json(): unknown
}

export interface Cli {
  readonly folder: string
  /** Runs a command to its end. */
  run(args: readonly string[], more?: { env?: Record<string, string>; input?: string }): Promise<CliResult>
  /** Starts one that goes on. */
  start(args: readonly string[], more?: { env?: Record<string, string> }): Program<string>
}

export async function cli(t: TestContext, env: Record<string, string> = {}): Promise<Cli> {
  const folder = await mkdtemp(join(tmpdir(), 'pawl-cli-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const { PATH = '' } = process.env
  const known = { PATH, HOME: folder, ...env }
  return {
    folder,
    async run(args, { env: more = {}, input = '' } = {}) {
      const child = spawn(process.execPath, [main, ...args], { cwd: folder, env: { ...known, ...more } })
      const kill = () => void child.kill('SIGKILL')
      process.once('exit', kill)
      child.stdin.end(input)
      const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
      process.removeListener('exit', kill)
      return { code: child.exitCode, out, err, json: () => JSON.parse(out) }
    },
    start: (args, { env: more = {} } = {}) =>
      startProcess(t, [main, ...args], { cwd: folder, env: { ...known, ...more } }, line => line),
  }
}

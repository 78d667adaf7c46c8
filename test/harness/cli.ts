/** The CLI in its own folder, with a known environment. Commands that end by themselves run in this process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { commands } from '../../src/cli/commands.ts'
import { run } from '../../src/cli/run.ts'
import { type Program, startProcess } from './program.ts'
import { shareSchemas } from './schemas.ts'

const main = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url))

export interface CliResult {
  readonly code: number | null
  readonly out: string
  readonly err: string
  /** The output, parsed as JSON. */
  json(): unknown
}

export interface CliOptions {
  readonly env?: Record<string, string>
}

export interface Cli {
  readonly folder: string
  /** Runs a command to its end, in this process. */
  run(args: readonly string[], options?: CliOptions): Promise<CliResult>
  /** Runs a command to its end in a process of its own, for tests of standard input, exit codes and signals. */
  runProcess(args: readonly string[], options?: CliOptions & { readonly input?: string }): Promise<CliResult>
  /** Starts a command that keeps running. */
  start(args: readonly string[], options?: CliOptions): Program<string>
}

export async function cli(t: TestContext, env: Record<string, string> = {}): Promise<Cli> {
  const folder = await mkdtemp(join(tmpdir(), 'pawl-cli-'))
  const started: Program<string>[] = []
  t.after(async () => {
    // A program that still runs could write into the folder while it is removed.
    for (const { signal } of started) signal('SIGKILL')
    await Promise.all(started.map(({ ended }) => ended))
    await rm(folder, { recursive: true, force: true })
  })
  const { PATH = '' } = process.env
  const known = { PATH, HOME: folder, ...env }
  return {
    folder,
    run: (args, { env: more = {} } = {}) => runHere(args, { ...known, ...more }, folder),
    async runProcess(args, { env: more = {}, input = '' } = {}) {
      const child = spawn(process.execPath, [main, ...args], { cwd: folder, env: { ...known, ...more } })
      const kill = () => void child.kill('SIGKILL')
      process.once('exit', kill)
      const unshare = shareSchemas()
      child.stdin.end(input)
      const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
      process.removeListener('exit', kill)
      unshare()
      return { code: child.exitCode, out, err, json: () => JSON.parse(out) }
    },
    start(args, { env: more = {} } = {}) {
      const program = startProcess(t, [main, ...args], { cwd: folder, env: { ...known, ...more } }, line => line)
      started.push(program)
      return program
    },
  }
}

/** Commands that run at the same time must be in the same folder: a process has one working directory. */
let running = 0
let home = ''

async function runHere(args: readonly string[], env: Record<string, string>, folder: string): Promise<CliResult> {
  if (running === 0) home = process.cwd()
  else if (process.cwd() !== folder) throw new Error(`a command in ${process.cwd()} still runs`)
  running += 1
  process.chdir(folder)
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const printed = Promise.all([text(stdout), text(stderr)])
  const never = new AbortController().signal
  try {
    const code = await run(commands, args, { stdout, stderr, env, folder, stopSignal: () => never })
    stdout.end()
    stderr.end()
    const [out, err] = await printed
    return { code, out, err, json: () => JSON.parse(out) }
  } finally {
    running -= 1
    if (running === 0) process.chdir(home)
  }
}

/** Programs that tests start in processes of their own. They are killed by process id, however the test ends. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { eventually } from './eventually.ts'
import { shareSchemas } from './schemas.ts'

export interface Program<Line> {
  readonly process: ChildProcess
  /** The output so far. */
  readonly lines: readonly Line[]
  /** The text of standard error so far. */
  complaints(): string
  signal(signal: NodeJS.Signals): void
  /** Waits for the first line that fits, which may have been printed already. */
  printed(fact: string, fits: (line: Line) => boolean, withinSeconds?: number): Promise<Line>
  /** Resolves when it has ended and all its output has been read. */
  readonly ended: Promise<void>
}

/** `path`: of the compiled program, relative to the folder of the tests. */
export function startProgram<Line>(
  t: TestContext,
  path: string,
  ask: object,
  read: (line: string) => Line,
): Program<Line> {
  const file = fileURLToPath(new URL(`../${path}`, import.meta.url))
  return startProcess(t, [file, JSON.stringify(ask)], {}, read)
}

/** Node with these arguments. */
export function startProcess<Line>(
  t: TestContext,
  args: readonly string[],
  where: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv },
  read: (line: string) => Line,
): Program<Line> {
  const child = spawn(process.execPath, args, { ...where, stdio: ['ignore', 'pipe', 'pipe'] })
  const end = () => void child.kill('SIGKILL')
  process.setMaxListeners(50)
  process.once('exit', end)
  const unshare = shareSchemas()
  const lines: Line[] = []
  const complaints: string[] = []
  const output = createInterface({ input: child.stdout! })
  // A test may close the output, as a terminal does that ends.
  child.stdout!.once('close', () => output.close())
  output.on('line', line => lines.push(read(line)))
  child.stderr!.on('data', text => complaints.push(String(text)))
  const ended = Promise.all([once(child, 'exit'), once(output, 'close')]).then(() => {
    process.removeListener('exit', end)
    unshare()
  })
  t.after(async () => {
    end()
    await ended
  })
  const complain = () => {
    if (child.exitCode !== null && child.exitCode !== 0) throw new Error(`the program failed: ${complaints.join('')}`)
  }
  return {
    process: child,
    lines,
    ended,
    complaints: () => complaints.join(''),
    signal: signal => void child.kill(signal),
    printed: (fact, fits, withinSeconds) =>
      eventually(
        `the program prints: ${fact}`,
        () => {
          complain()
          return lines.find(fits)
        },
        withinSeconds,
      ),
  }
}

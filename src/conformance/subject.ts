/** The worker program under test, as a process of its own that is ended by its id, with all that it has started. */
import { type ChildProcess, spawn } from 'node:child_process'

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly at: number
}

export interface Subject {
  /** How it ended; undefined: it lives. */
  exit(): Exit | undefined
  terminate(): void
  /** Ends it and what it has started, now. */
  end(): Promise<void>
  /** The last lines that it wrote. */
  lastWords(): string
}

const keptCharacters = 2000

/** Runs one command, with its arguments, by the shell's rules of quoting. */
export function startSubject(command: string, environment: Readonly<Record<string, string>>): Subject {
  // In place of the shell, so that a signal reaches the program; in a group of its own, so that nothing is left behind.
  const child = spawn('sh', ['-c', `exec ${command}`], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let exit: Exit | undefined
  let words = ''
  const listen = (text: Buffer) => {
    words = (words + text.toString()).slice(-keptCharacters)
  }
  child.stdout.on('data', listen)
  child.stderr.on('data', listen)
  const ended = new Promise<void>(resolve => {
    child.once('error', error => {
      words += String(error)
      exit = { code: null, signal: null, at: performance.now() }
      resolve()
    })
    child.once('exit', (code, signal) => {
      exit = { code, signal, at: performance.now() }
      resolve()
    })
  })
  const killGroup = () => endGroup(child)
  process.once('exit', killGroup)
  return {
    exit: () => exit,
    terminate: () => void child.kill('SIGTERM'),
    async end() {
      killGroup()
      process.removeListener('exit', killGroup)
      await ended
      // What has left the group may hold these open; it must not keep us waiting.
      child.stdout.destroy()
      child.stderr.destroy()
    },
    lastWords: () => words.trim(),
  }
}

function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // Nobody of the group is left.
  }
}

/** The process of the worker under test. It has its own process group, so that it can be killed with all its children. */
import { type ChildProcess, spawn } from 'node:child_process'

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly at: number
}

export interface WorkerProcess {
  /** Undefined while the process runs. */
  exit(): Exit | undefined
  terminate(): void
  /** Kills the process and its children. */
  end(): Promise<void>
  /** The last lines of its output. */
  recentOutput(): string
}

const keptCharacters = 2000

/** Runs a shell command. */
export function startWorkerProcess(command: string, environment: Readonly<Record<string, string>>): WorkerProcess {
  // `exec` replaces the shell, so that signals reach the program. `detached` gives it its own process group.
  const child = spawn('sh', ['-c', `exec ${command}`], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let exit: Exit | undefined
  let output = ''
  const append = (text: Buffer) => {
    output = (output + text.toString()).slice(-keptCharacters)
  }
  child.stdout.on('data', append)
  child.stderr.on('data', append)
  const ended = new Promise<void>(resolve => {
    child.once('error', error => {
      output += String(error)
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
      // A process that has left the group may keep these open.
      child.stdout.destroy()
      child.stderr.destroy()
    },
    recentOutput: () => output.trim(),
  }
}

function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // All processes of the group have ended.
  }
}

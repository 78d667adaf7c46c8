/**
 * Keeps one worker process that runs the latest tasks that could be loaded. On a change, the next process loads the tasks
 * while the old one keeps working. Then the old one stops as on SIGTERM: running tasks may finish, and tasks that it has
 * claimed but not started are requeued without using an attempt.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { FromWorker, ToWorker, WorkerSetup } from './worker-process.ts'

const program = fileURLToPath(new URL(`./worker-process${extname(import.meta.url)}`, import.meta.url))

export interface Reports {
  /** A worker has begun. `finishing`: whether the worker before it still runs tasks; undefined for the first one. */
  started(types: readonly string[], finishing: boolean | undefined): void
  /** The tasks could not be loaded. `isKept`: the worker before keeps running. */
  failed(lines: readonly string[], isKept: boolean): void
  /** The worker ended by itself. */
  ended(how: string): void
}

export interface WorkerProcesses {
  /** Replaces the worker by one that has loaded the tasks anew. If they cannot be loaded, the worker stays. */
  load(): Promise<void>
  /** Ends a load in progress, which may never finish: a module can wait for something that does not happen. */
  abandonLoad(): void
  /** Stops the workers, and resolves when their running tasks have ended or were requeued. */
  close(): Promise<void>
}

/** A handler that blocks its process hears no message. */
const killAfterSeconds = 15

export function openWorkers(setup: WorkerSetup, reports: Reports): WorkerProcesses {
  const processes = new Set<ChildProcess>()
  let current: ChildProcess | undefined
  let loading: ChildProcess | undefined
  let isClosing = false

  const start = (): ChildProcess => {
    const child = spawn(process.execPath, [program], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    processes.add(child)
    child.on('error', () => {
      // A process that could not be started has no `exit` event.
      if (child.pid === undefined) processes.delete(child)
    })
    child.once('exit', (code, signal) => {
      processes.delete(child)
      if (child !== current) return
      current = undefined
      if (!isClosing) reports.ended(signal ?? `exit code ${code}`)
    })
    send(child, { setup })
    return child
  }

  /** A process that still loads holds no tasks. */
  const abandonLoad = () => void loading?.kill('SIGKILL')

  const stop = async (child: ChildProcess): Promise<boolean> => {
    const deadline = ((setup.values.drainSeconds ?? 30) + killAfterSeconds) * 1000
    const timer = setTimeout(() => child.kill('SIGKILL'), deadline)
    child.once('exit', () => clearTimeout(timer))
    send(child, 'stop')
    const answer = await messageOf(child)
    return answer !== undefined && 'stopping' in answer ? answer.stopping : false
  }

  return {
    async load() {
      if (isClosing) return
      const next = start()
      loading = next
      const answer = await messageOf(next)
      loading = undefined
      if (isClosing || next.killed) return
      if (answer === undefined || !('loaded' in answer)) {
        const lines =
          answer !== undefined && 'failed' in answer ? answer.failed : ['The process ended while it loaded.']
        return reports.failed(lines, current !== undefined)
      }
      const before = current
      current = next
      const finishing = before === undefined ? undefined : await stop(before)
      send(next, 'run')
      reports.started(answer.loaded, finishing)
    },
    abandonLoad,
    async close() {
      isClosing = true
      abandonLoad()
      const ending = [...processes].map(child => once(child, 'exit'))
      for (const child of processes) void stop(child)
      await Promise.all(ending)
    },
  }
}

function send(child: ChildProcess, message: ToWorker): void {
  // It may have ended just now, which its `exit` event reports.
  if (child.connected) child.send(message, () => {})
}

/** The next message; undefined if the process ends first. A process that cannot be started has failed. */
async function messageOf(child: ChildProcess): Promise<FromWorker | undefined> {
  if (child.exitCode !== null || child.signalCode !== null) return undefined
  return await Promise.race([
    once(child, 'message').then(
      ([message]) => message as FromWorker,
      error => ({ failed: [`The worker process could not be started: ${error.message}`] }),
    ),
    new Promise<undefined>(resolve => child.once('exit', () => resolve(undefined))),
  ])
}

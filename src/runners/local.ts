/**
 * Workers for commands as child processes of this one: as many as there is work for, on each queue. They speak to the
 * server as any other worker does, so one that dies costs what its leases cost, and no more.
 */
import { type ChildProcess, spawn } from 'node:child_process'

export interface LocalPoolOptions {
  /** The program and its first arguments; the queue is appended. */
  readonly command: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  /** All of them together. */
  readonly most: number
  readonly log: (word: string, facts: Record<string, unknown>) => void
  /** How long after it died one is replaced. Default 1. */
  readonly restartSeconds?: number
}

export interface LocalPool {
  /** How many workers there are to be on each queue; what is not named is to have none. */
  resize(wanted: ReadonlyMap<string, number>): void
  workers(): readonly { readonly queue: string; readonly pid: number }[]
  /** Tells all of them to end, and waits until they have. */
  close(): Promise<void>
}

interface Worker {
  readonly queue: string
  readonly child: ChildProcess
  readonly ended: Promise<void>
  isLeaving: boolean
}

export function localPool({ command, env, most, log, restartSeconds = 1 }: LocalPoolOptions): LocalPool {
  const workers = new Set<Worker>()
  const notBefore = new Map<string, number>()
  let isClosed = false

  function hire(queue: string): void {
    const [program, ...args] = command
    // It ends when its standard input does: so it does not outlive this process, however that ends.
    const child = spawn(program!, [...args, '--queue', queue], { env, stdio: ['pipe', 'inherit', 'inherit'] })
    child.stdin!.on('error', () => {})
    const ended = new Promise<void>(resolve => {
      child.once('error', error => {
        log('worker.unstarted', { queue, error: error.message })
        resolve()
      })
      child.once('exit', (code, signal) => {
        if (!worker.isLeaving) log('worker.died', { queue, pid: child.pid, code, signal })
        resolve()
      })
    })
    const worker: Worker = { queue, child, ended, isLeaving: false }
    workers.add(worker)
    void ended.then(() => {
      workers.delete(worker)
      if (!worker.isLeaving) notBefore.set(queue, performance.now() + restartSeconds * 1000)
    })
  }

  function dismiss(worker: Worker): void {
    worker.isLeaving = true
    worker.child.stdin?.end()
    worker.child.kill('SIGTERM')
  }

  return {
    resize(wanted) {
      if (isClosed) return
      let room = most
      const queues = new Set([...wanted.keys(), ...[...workers].map(({ queue }) => queue)])
      for (const queue of queues) {
        const here = [...workers].filter(worker => worker.queue === queue && !worker.isLeaving)
        const target = Math.min(wanted.get(queue) ?? 0, room)
        room -= target
        for (const worker of here.slice(target)) dismiss(worker)
        if ((notBefore.get(queue) ?? 0) > performance.now()) continue
        for (let missing = target - here.length; missing > 0; missing--) hire(queue)
      }
    },
    workers: () =>
      [...workers].flatMap(({ queue, child }) => (child.pid === undefined ? [] : [{ queue, pid: child.pid }])),
    async close() {
      isClosed = true
      for (const worker of workers) dismiss(worker)
      await Promise.all([...workers].map(({ ended }) => ended))
    },
  }
}

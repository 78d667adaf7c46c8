/**
 * Runs workers for commands as child processes, as many per queue as there is work for. They use the API like any other
 * worker, so one that dies costs no more than its leases.
 */
import { type ChildProcess, spawn } from 'node:child_process'

interface LocalPoolOptions {
  /** The program and its first arguments. The queue and the drain time are appended. */
  readonly command: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  /** The first line of each worker's standard input, which then stays open. */
  readonly input?: string
  /** Maximum number of workers on all queues. */
  readonly most: number
  readonly log: (word: string, facts: Record<string, unknown>) => void
  /** Delay before a dead worker is replaced. Default 1. */
  readonly restartSeconds?: number
  /** How long workers may take to end when the pool is closed, before they are killed. Default 30. */
  readonly closeSeconds?: number
}

/** A dismissed worker finishes its command, however long that takes, because the work would have to be repeated. */
const drainSeconds = 86_400

export type LocalPool = ReturnType<typeof localPool>

interface Worker {
  readonly queue: string
  readonly child: ChildProcess
  readonly ended: Promise<void>
  isLeaving: boolean
}

export function localPool(options: LocalPoolOptions) {
  const { command, env, input, most, log, restartSeconds = 1, closeSeconds = 30 } = options
  const workers = new Set<Worker>()
  const notBefore = new Map<string, number>()
  let isClosed = false

  function hire(queue: string): void {
    const [program, ...args] = command
    const all = [...args, '--queue', queue, '--drain-seconds', String(drainSeconds)]
    // The worker ends soon after its standard input closes, so it does not outlive this process for long.
    const child = spawn(program!, all, { env, stdio: ['pipe', 'inherit', 'inherit'] })
    child.stdin!.on('error', () => {})
    if (input !== undefined) child.stdin!.write(input)
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
    if (!worker.isLeaving) worker.child.kill('SIGTERM')
    worker.isLeaving = true
  }

  const staying = (queue: string) => [...workers].filter(worker => worker.queue === queue && !worker.isLeaving)

  /** If there is not room for all, queues with the fewest workers come first. */
  function fill(targets: ReadonlyMap<string, number>): void {
    const now = performance.now()
    const open = [...targets].filter(([queue]) => (notBefore.get(queue) ?? 0) <= now)
    while (workers.size < most) {
      const short = open.flatMap(([queue, target]) => {
        const here = staying(queue).length
        return here < target ? [{ queue, here }] : []
      })
      if (short.length === 0) return
      hire(short.reduce((least, one) => (one.here < least.here ? one : least)).queue)
    }
  }

  return {
    /**
     * Sets the number of workers per queue; other queues get none. A surplus worker takes no more work, finishes what it
     * has and ends. It counts until then.
     */
    resize(wanted: ReadonlyMap<string, number>): void {
      if (isClosed) return
      const targets = shares(wanted, most)
      for (const queue of new Set([...workers].map(({ queue }) => queue))) {
        for (const worker of staying(queue).slice(targets.get(queue) ?? 0)) dismiss(worker)
      }
      fill(targets)
    },
    workers: () =>
      [...workers].flatMap(({ queue, child }) => (child.pid === undefined ? [] : [{ queue, pid: child.pid }])),
    /** Ends all workers and waits for them. Workers that take too long are killed. */
    async close(): Promise<void> {
      isClosed = true
      for (const worker of workers) {
        dismiss(worker)
        // Also makes workers hurry that are already leaving.
        worker.child.stdin?.end()
      }
      // Their commands end with them, because each one has a guard.
      const late = setTimeout(() => {
        for (const { child } of workers) child.kill('SIGKILL')
      }, closeSeconds * 1000)
      await Promise.all([...workers].map(({ ended }) => ended))
      clearTimeout(late)
    },
  }
}

/** Distributes workers in turns until there is no room or no demand, so no queue gets two while another has none. */
function shares(wanted: ReadonlyMap<string, number>, most: number): Map<string, number> {
  const targets = new Map<string, number>()
  let room = most
  for (let each = 1; room > 0; each++) {
    const still = [...wanted].filter(([, workers]) => workers >= each)
    if (still.length === 0) break
    for (const [queue] of still.slice(0, room)) targets.set(queue, each)
    room -= still.length
  }
  return targets
}

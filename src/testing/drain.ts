import type { Engine } from '../engine/engine.ts'
import { makeWakeSignal } from '../engine/wake.ts'
import type { ClaimedTask, SettledTask, SyncAnswer, SyncPort } from '../protocol/tasks/sync.ts'
import { checkOptions, type Fields, field, firstFault, flag, number, type OptionsOf, text } from '../schema/check.ts'
import { nextDueSeconds } from '../store/tasks/due.ts'
import type { Task } from '../worker/define-task.ts'
import { startWorker } from '../worker/worker.ts'
import { inTime } from './wait-for.ts'

const fields = {
  /** Default: the types of the tasks. */
  queues: field<readonly string[]>({}, value =>
    Array.isArray(value) ? firstFault(text(200), value) : 'be a list of names',
  ),
  /** Advance the clock to tasks that are not due yet (retries, runAt), instead of leaving them. Default false. */
  skipWaits: flag,
  /** Handlers that run at once. Default 10. */
  concurrency: number({ from: 1, to: 1000, whole: true }),
  /** Maximum number of attempts. More is an error, because a task that queues itself would never end. Default 1,000. */
  limit: number({ from: 1, to: 1_000_000, whole: true }),
  /** Maximum time for the call. Default 30. */
  withinSeconds: number({ from: 0.001, to: 3600 }),
} satisfies Fields

/** Options of `engine.drain`. */
export interface DrainOptions extends OptionsOf<typeof fields> {}

/** An attempt that was run, and the worker's report of it. */
export interface Ran extends Pick<SettledTask, 'id' | 'outcome' | 'output' | 'error' | 'reason' | 'partial'> {
  readonly type: string
  readonly attempt: number
}

/**
 * Runs everything that is due with an ordinary worker, until a claim finds nothing and no task is held. It observes the
 * worker's requests to see what is claimed and reported, and when nothing is left.
 */
export async function drain(
  { engine, advance }: { engine: Engine; advance(seconds: number): Promise<void> },
  tasks: readonly Task[],
  options: DrainOptions = {},
): Promise<Ran[]> {
  checkOptions(options, fields, 'drain')
  const { queues = tasks.map(({ type }) => type), skipWaits = false, concurrency = 10 } = options
  const { limit = 1000, withinSeconds = 30 } = options
  const held = new Map<string, ClaimedTask>()
  const ran: Ran[] = []
  const reported = makeWakeSignal()
  const over = makeWakeSignal()
  let failed: Error | undefined
  let attempts = 0

  /** Called when nothing could be claimed. Returns false if there may be something now. */
  const isDrained = async (next: Promise<void>): Promise<boolean> => {
    if (held.size > 0) {
      await next
      return false
    }
    const seconds = skipWaits ? await nextDueSeconds(engine.context.sql, queues) : null
    if (seconds === null) return true
    await advance(seconds)
    return false
  }
  const claim: SyncPort['sync'] = async (request, signal) => {
    for (;;) {
      const next = reported.next()
      const answer = await engine.sync({ ...request, waitSeconds: 0 }, signal)
      attempts += answer.claimed.length
      for (const task of answer.claimed) held.set(task.id, task)
      if (attempts > limit) failed = new Error(`More than ${limit} attempts: does a task queue itself?`)
      const isOver = failed !== undefined || (answer.claimed.length === 0 && (await isDrained(next)))
      if (isOver) over.notify()
      if (isOver || answer.claimed.length > 0) return isOver ? untilStopped(answer, signal) : answer
    }
  }
  const port: SyncPort = {
    putTaskType: (type, settings) => engine.putTaskType(type, settings),
    completeIn: (tx, settled, worker) => engine.completeIn(tx, settled, worker),
    stageJob: id => engine.stageJob(id),
    async sync(request, signal) {
      if ((request.claim ?? 0) > 0) return claim(request, signal)
      const answer = await engine.sync(request, signal)
      for (const settled of request.settled ?? []) {
        const task = held.get(settled.id)
        held.delete(settled.id)
        if (task !== undefined) ran.push(toRan(task, settled))
      }
      reported.notify()
      return answer
    },
  }
  const finished = over.next()
  const worker = startWorker(port, tasks, { name: 'drain', queues, concurrency, drainSeconds: 0, log: () => {} })
  const isInTime = await inTime(finished, withinSeconds * 1000)
  const left = [...held.values()].map(({ id, type }) => `${type} ${id}`)
  await worker.stop()
  if (failed !== undefined) throw failed
  if (!isInTime)
    throw new Error(`Not drained within ${withinSeconds} s. Still in hand: ${left.join(', ') || 'nothing'}.`)
  return ran
}

/** The worker asks for more work until it is stopped, so the last claim is answered only then. */
async function untilStopped(answer: SyncAnswer, signal: AbortSignal | undefined): Promise<SyncAnswer> {
  if (signal !== undefined && !signal.aborted) {
    await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
  }
  return answer
}

function toRan(
  { type, attempt }: ClaimedTask,
  { epoch: _, spawn: _spawned, ranMs: _ran, ...outcome }: SettledTask,
): Ran {
  return { ...outcome, type, attempt }
}

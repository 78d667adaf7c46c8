import type { Engine } from '../engine/engine.ts'
import type { ClaimedTask, SettledTask, SyncAnswer, SyncPort } from '../protocol/tasks/sync.ts'
import { checkOptions, type Fields, field, firstFault, number, oneOf, text } from '../schema/check.ts'
import { nextDueSeconds } from '../store/tasks/claim.ts'
import type { Task } from '../worker/define-task.ts'
import { startWorker } from '../worker/worker.ts'
import { inTime, makeChanges } from './changes.ts'

export interface DrainOptions {
  /** Default: the types of the tasks. */
  readonly queues?: readonly string[]
  /** Move the clock on to what waits for its time (retries, runAt), instead of leaving it. Default false. */
  readonly skipWaits?: boolean
  /** Handlers that run at once. Default 10. */
  readonly concurrency?: number
  /** Most attempts; more is an error, for a task that queues itself would never end. Default 1,000. */
  readonly limit?: number
  /** How long it may take. Default 30. */
  readonly withinSeconds?: number
}

const fields: Fields = {
  queues: field({}, value => (Array.isArray(value) ? firstFault(text(200), value) : 'be a list of names')),
  skipWaits: oneOf([true, false]),
  concurrency: number({ from: 1, to: 1000, whole: true }),
  limit: number({ from: 1, to: 1_000_000, whole: true }),
  withinSeconds: number({ from: 0.001, to: 3600 }),
}

/** One attempt that was made, and what the worker reported of it. */
export interface Ran extends Pick<SettledTask, 'id' | 'outcome' | 'output' | 'error' | 'reason' | 'partial'> {
  readonly type: string
  readonly attempt: number
}

/**
 * Works what is due, with a worker like any other, until a claim finds nothing and nothing is in hand. The worker's line
 * to the engine is listened to: it tells what was claimed and reported, and when there is no more.
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
  const said = makeChanges()
  const over = makeChanges()
  let failed: Error | undefined
  let attempts = 0

  /** Nothing could be claimed. False: there may be something now. */
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
      const next = said.next()
      const answer = await engine.sync({ ...request, waitSeconds: 0 }, signal)
      attempts += answer.claimed.length
      for (const task of answer.claimed) held.set(task.id, task)
      if (attempts > limit) failed = new Error(`More than ${limit} attempts: does a task queue itself?`)
      const isOver = failed !== undefined || (answer.claimed.length === 0 && (await isDrained(next)))
      if (isOver) over.tell()
      if (isOver || answer.claimed.length > 0) return isOver ? untilStopped(answer, signal) : answer
    }
  }
  const port: SyncPort = {
    putTaskType: (type, settings) => engine.putTaskType(type, settings),
    completeIn: (tx, settled, worker) => engine.completeIn(tx as Parameters<Engine['completeIn']>[0], settled, worker),
    async sync(request, signal) {
      if ((request.claim ?? 0) > 0) return claim(request, signal)
      const answer = await engine.sync(request, signal)
      for (const settled of request.settled ?? []) {
        const task = held.get(settled.id)
        held.delete(settled.id)
        if (task !== undefined) ran.push(toRan(task, settled))
      }
      said.tell()
      return answer
    },
  }
  const finished = over.next()
  const worker = startWorker(port, tasks, { name: 'drain', queues, concurrency, drainSeconds: 0 })
  const isInTime = await inTime(finished, withinSeconds * 1000)
  const left = [...held.values()].map(({ id, type }) => `${type} ${id}`)
  await worker.stop()
  if (failed !== undefined) throw failed
  if (!isInTime)
    throw new Error(`Not drained within ${withinSeconds} s. Still in hand: ${left.join(', ') || 'nothing'}.`)
  return ran
}

/** The worker asks for more as long as it lives; now there is none. */
async function untilStopped(answer: SyncAnswer, signal: AbortSignal | undefined): Promise<SyncAnswer> {
  if (signal !== undefined && !signal.aborted) {
    await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
  }
  return answer
}

function toRan({ type, attempt }: ClaimedTask, { epoch: _, spawn: _spawned, ranMs: _ran, ...said }: SettledTask): Ran {
  return { ...said, type, attempt }
}

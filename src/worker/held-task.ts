import type { ClaimedTask, HeldTask, SettledTask } from '../protocol/sync.ts'
import type { TaskContext } from './context.ts'
import { Interrupted, type InterruptReason, reportOf } from './errors.ts'

/** One task in this worker's hands, from the claim until its report has been answered. */
export interface InHand {
  readonly task: ClaimedTask
  readonly abort: AbortController
  /** By this process's own clock: the moment at which the lease ends unless a beat is answered. */
  leaseEndsAt: number
  startedAt: number | undefined
  startTold: boolean
  settled: SettledTask | undefined
  unsent: { progress?: unknown; checkpoint?: unknown }
  /** The beat that is under way. Of two at once the store would pass one over. */
  beating: Promise<unknown> | undefined
  isPartial: boolean
  interrupted: InterruptReason | undefined
}

/** `claimedAt` is the earliest moment, by this process's clock, at which the lease can have begun. */
export function inHand(task: ClaimedTask, claimedAt: number): InHand {
  return {
    task,
    abort: new AbortController(),
    leaseEndsAt: claimedAt + task.leaseSeconds * 1000,
    startedAt: undefined,
    startTold: false,
    settled: undefined,
    unsent: {},
    beating: undefined,
    isPartial: false,
    interrupted: undefined,
  }
}

export function nameOf({ task }: InHand): HeldTask {
  return { id: task.id, epoch: task.epoch }
}

export function interrupt(held: InHand, reason: InterruptReason): void {
  if (held.interrupted !== undefined || held.settled !== undefined) return
  held.interrupted = reason
  held.abort.abort(new Interrupted(reason))
}

/**
 * Runs the handler and never throws. Kept apart from reporting, so that a lost network after good work is reported
 * again and never turned into a failure. A handler that does not stop when its time is up is left behind.
 */
export async function attempt(
  held: InHand,
  run: (payload: unknown, ctx: TaskContext) => Promise<unknown>,
  saveCheckpoint: (held: InHand, value: unknown) => Promise<void>,
): Promise<SettledTask> {
  const { timeoutSeconds } = held.task
  const began = performance.now()
  held.startedAt = began
  let late: NodeJS.Timeout | undefined
  const timeUp = new Promise<never>((_, reject) => {
    if (timeoutSeconds === null) return
    late = setTimeout(() => {
      interrupt(held, 'timeout')
      reject(new Interrupted('timeout'))
    }, timeoutSeconds * 1000)
  })
  try {
    const output = await Promise.race([run(held.task.payload, contextOf(held, saveCheckpoint)), timeUp])
    const done = {
      outcome: 'succeeded',
      ...(output !== undefined && { output }),
      ...(held.isPartial && { partial: true }),
    } as const
    return { ...nameOf(held), ...done, ranMs: performance.now() - began }
  } catch (error) {
    return { ...nameOf(held), ...reportOf(error, held.interrupted), ranMs: performance.now() - began }
  } finally {
    clearTimeout(late)
  }
}

function contextOf(held: InHand, saveCheckpoint: (held: InHand, value: unknown) => Promise<void>): TaskContext {
  const { id, type, attempt: number, epoch, correlationId, traceparent, checkpoint } = held.task
  return {
    id,
    type,
    attempt: number,
    epoch,
    correlationId,
    traceparent,
    signal: held.abort.signal,
    lastCheckpoint: checkpoint ?? null,
    progress(value) {
      held.unsent.progress = value
    },
    checkpoint: value => saveCheckpoint(held, value),
    partial() {
      held.isPartial = true
    },
  }
}

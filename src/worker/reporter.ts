import { leaseOf, type Refusal, type SettledTask } from '../protocol/sync.ts'
import type { Hands } from './hands.ts'
import { type InHand, nameOf, traceOf } from './held-task.ts'
import type { Line } from './line.ts'
import { batchSize, logBytesPerSync, type WorkerSettings } from './options.ts'

/**
 * Sends reports until they are answered. What ends while an answer is awaited goes with the next, so a busy worker
 * makes large batches by itself. It never rejects.
 */
export function makeReporter(line: Line, hands: Hands, { name: worker, log }: WorkerSettings) {
  const waiting: InHand[] = []
  const secondReports = new WeakSet<InHand>()
  let isSending = false
  let most = batchSize

  async function send(): Promise<void> {
    isSending = true
    // What else ends in this turn of the event loop goes with it.
    await new Promise(setImmediate)
    while (waiting.length > 0) {
      const batch = waiting.splice(0, fitting(waiting, most))
      const answer = await line.untilAnswered(() => line.say({ settled: batch.map(withLog) }), batch)
      if (answer === undefined && !line.isHungUp()) {
        takeApart(batch)
        continue
      }
      most = batchSize
      const refusals = new Map(answer?.refused.map(refusal => [leaseOf(refusal), refusal]))
      for (const one of batch) heed(one, refusals.size === 0 ? undefined : refusals.get(leaseOf(one.task)))
    }
    isSending = false
  }

  /** The engine cannot take them together (they are too large, say): one by one, until the culprit stands alone. */
  function takeApart(batch: readonly InHand[]): void {
    most = Math.max(1, batch.length >> 1)
    if (batch.length > 1) waiting.unshift(...batch)
    else
      heed(batch[0]!, { ...nameOf(batch[0]!), code: 'PAYLOAD_INVALID', message: 'The engine cannot take its report.' })
  }

  function heed(one: InHand, refusal: Refusal | undefined): void {
    if (refusal !== undefined) log('task.refused', { ...refusal, ...traceOf(one), worker })
    if (refusal === undefined || refusal.code === 'LEASE_LOST' || secondReports.has(one)) {
      hands.letGo(one)
      return
    }
    one.settled = failedBy(one.settled!, refusal)
    secondReports.add(one)
    waiting.push(one)
  }

  return {
    /** `one` has been settled. */
    report(one: InHand): void {
      waiting.push(one)
      if (!isSending) void send()
    },
  }
}

/** How many of these go into one sync: at least one, and no more log lines than can be sent at once. */
function fitting(waiting: readonly InHand[], atMost: number): number {
  let bytes = 0
  const most = Math.min(waiting.length, atMost)
  for (let index = 0; index < most; index++) {
    bytes += waiting[index]!.log?.bytes() ?? 0
    if (bytes > logBytesPerSync) return Math.max(1, index)
  }
  return most
}

/** What no beat has carried goes with the report, and again with it if that is sent again. */
function withLog(one: InHand): SettledTask {
  const logs = one.log?.last(performance.now()) ?? []
  return logs.length === 0 ? one.settled! : { ...one.settled!, logs }
}

/** A report that the engine cannot take (an output that is too large, say) is a failed attempt, and says why. */
function failedBy({ id, epoch }: SettledTask, { message }: Refusal): SettledTask {
  return { id, epoch, outcome: 'failed', error: { message, step: 'output' } }
}

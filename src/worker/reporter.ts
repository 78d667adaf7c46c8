import type { Refusal, SettledTask } from '../protocol/sync.ts'
import { type Hands, keyOf } from './hands.ts'
import type { InHand } from './held-task.ts'
import type { Line } from './line.ts'
import { batchSize, type WorkerSettings } from './options.ts'

/**
 * Sends reports until they are answered. What ends while an answer is awaited goes with the next, so a busy worker
 * makes large batches by itself. It never rejects.
 */
export function makeReporter(line: Line, hands: Hands, { name: worker, log }: WorkerSettings) {
  const waiting: InHand[] = []
  const secondReports = new WeakSet<InHand>()
  let isSending = false

  async function send(): Promise<void> {
    isSending = true
    // What else ends in this turn of the event loop goes with it.
    await new Promise(setImmediate)
    while (waiting.length > 0) {
      const batch = waiting.splice(0, batchSize)
      const settled = batch.map(one => one.settled!)
      const answer = await line.untilAnswered(() => line.say({ settled }))
      const refusals = new Map(answer?.refused.map(refusal => [keyOf(refusal), refusal]))
      for (const one of batch) heed(one, refusals.size === 0 ? undefined : refusals.get(keyOf(one.task)))
    }
    isSending = false
  }

  function heed(one: InHand, refusal: Refusal | undefined): void {
    if (refusal !== undefined) log('task.refused', { ...refusal, worker })
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

/** A report that the engine cannot take (an output that is too large, say) is a failed attempt, and says why. */
function failedBy({ id, epoch }: SettledTask, { message }: Refusal): SettledTask {
  return { id, epoch, outcome: 'failed', error: { message, step: 'output' } }
}

import type { Refusal, SettledTask } from '../protocol/sync.ts'
import type { Hands } from './hands.ts'
import type { Line } from './line.ts'
import { batchSize, type WorkerSettings } from './options.ts'

/**
 * Sends reports until they are answered. What ends while an answer is awaited goes with the next, so a busy worker
 * makes large batches by itself. It never rejects.
 */
export function makeReporter(line: Line, hands: Hands, { name: worker, log }: WorkerSettings) {
  const waiting: SettledTask[] = []
  const secondReports = new WeakSet<SettledTask>()
  let isSending = false

  async function send(): Promise<void> {
    isSending = true
    // What else ends in this turn of the event loop goes with it.
    await new Promise(setImmediate)
    while (waiting.length > 0) {
      const batch = waiting.splice(0, batchSize)
      const answer = await line.untilAnswered(() => line.say({ settled: batch }))
      const refusals = new Map(answer?.refused.map(refusal => [refusal.id, refusal]))
      for (const one of batch) heed(one, refusals.get(one.id))
    }
    isSending = false
  }

  function heed(one: SettledTask, refusal: Refusal | undefined): void {
    if (refusal !== undefined) log('task.refused', { ...refusal, worker })
    if (refusal === undefined || refusal.code === 'LEASE_LOST' || secondReports.has(one)) {
      hands.letGo(one)
      return
    }
    const second = failedBy(one, refusal)
    secondReports.add(second)
    waiting.push(second)
  }

  return {
    report(settled: SettledTask): void {
      waiting.push(settled)
      if (!isSending) void send()
    },
  }
}

/** A report that the engine cannot take (an output that is too large, say) is a failed attempt, and says why. */
function failedBy({ id, epoch }: SettledTask, { message }: Refusal): SettledTask {
  return { id, epoch, outcome: 'failed', error: { message, step: 'output' } }
}

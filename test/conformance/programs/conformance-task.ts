/** The task of the conformance suite, for workers in TypeScript: see docs/worker-protocol.md. */
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineTask, GiveUp, RetryIn } from '../../../src/worker/index.ts'

interface Payload {
  readonly do: 'succeed' | 'fail' | 'giveUp' | 'retryIn' | 'sleep'
  readonly seconds?: number
  readonly output?: unknown
  readonly message?: string
  readonly times?: number
}

export const conformanceTask = defineTask({
  type: 'conformance',
  async handler(payload, { id, epoch, attempt, signal }) {
    const { do: what, seconds = 0, output, message = what, times = Infinity } = payload as Payload
    const journal = (word: string) => appendFileSync(process.env.PAWL_JOURNAL!, `${word} ${id} ${epoch}\n`)
    journal('begin')
    try {
      if (attempt > times) return output
      if (what === 'fail') throw new Error(message)
      if (what === 'giveUp') throw new GiveUp(message)
      if (what === 'retryIn') throw new RetryIn(seconds, message)
      if (what === 'sleep') await sleep(seconds * 1000, undefined, { signal })
      return output
    } finally {
      journal('end')
    }
  },
})

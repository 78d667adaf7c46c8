/** A worker over HTTP in its own process. The payload says how the handler ends; the output names the lease. */
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from '../../../src/client/client.ts'
import { DeadLetter, defineTask, GiveUp, Skip, startWorker } from '../../../src/worker/index.ts'

export interface FleetWorkerProgram {
  readonly server: string
}

export interface FleetPayload {
  readonly ends: 'well' | 'after a failure' | 'for good' | 'skipped' | 'aside'
  readonly ms: number
}

const { server }: FleetWorkerProgram = JSON.parse(process.argv[2]!)

const work = defineTask({
  type: 'work',
  leaseSeconds: 5,
  heartbeatSeconds: 1,
  retry: { delaySeconds: 0, losses: 1000 },
  async handler(payload, ctx) {
    const { ends, ms } = payload as FleetPayload
    await sleep(ms)
    if (ends === 'after a failure' && ctx.lastCheckpoint === null) {
      await ctx.checkpoint('failed once')
      throw new Error('the first time')
    }
    if (ends === 'for good') throw new GiveUp('never')
    if (ends === 'skipped') throw new Skip('no need')
    if (ends === 'aside') throw new DeadLetter('policy_violation', 'look at it')
    return { epoch: ctx.epoch }
  },
})

startWorker(connect({ server }), [work], { concurrency: 5, waitSeconds: 2 })
process.stdout.write('{"word": "works"}\n')

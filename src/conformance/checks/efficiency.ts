/** Advised checks: they make a worker cheap to serve and easy to observe. */
import { type Check, expect } from '../check.ts'

const idleSeconds = 5
const maxSyncs = 8

const waits: Check = {
  id: 'waits',
  title: 'waits for work at the server (waitSeconds) instead of asking all the time',
  level: 'advised',
  async run(rig) {
    rig.start()
    const first = await rig.until('the worker asked for work', 15, () => rig.proxy.syncs.find(({ sync }) => sync.claim))
    expect((first.sync.waitSeconds ?? 0) >= 1, 'it claims without waitSeconds')
    const before = rig.proxy.syncs.length
    await rig.pause(idleSeconds)
    const syncs = rig.proxy.syncs.length - before
    expect(syncs <= maxSyncs, `without work, it sent ${syncs} syncs in ${idleSeconds} s`)
    return `without work, it sent ${syncs} syncs in ${idleSeconds} s`
  },
}

const tellsStart: Check = {
  id: 'tells-start',
  title: 'says that a long task has started, so that it is seen running',
  level: 'advised',
  async run(rig) {
    const id = await rig.enqueue({ do: 'sleep', seconds: 8 })
    rig.start()
    await rig.begun(id)
    await rig.until('the task is running', 5, async () => {
      const { state } = await rig.engine.task(id)
      return state === 'running'
    })
    return 'the task was reported as running'
  },
}

export const efficiencyChecks = [waits, tellsStart]

/** What makes a worker cheap to serve and good to watch. */
import { type Check, expect } from '../check.ts'

const idleSeconds = 5
const mostSyncs = 8

const waits: Check = {
  id: 'waits',
  title: 'waits for work at the server (waitSeconds) instead of asking all the time',
  level: 'advised',
  async run(rig) {
    rig.start()
    const first = await rig.until('the worker asked for work', 15, () => rig.proxy.syncs.find(({ sync }) => sync.claim))
    expect((first.sync.waitSeconds ?? 0) >= 1, 'it asks for work without waitSeconds')
    const before = rig.proxy.syncs.length
    await rig.pause(idleSeconds)
    const asked = rig.proxy.syncs.length - before
    expect(asked <= mostSyncs, `with nothing to do it asked ${asked} times in ${idleSeconds} s`)
    return `with nothing to do it asked ${asked} times in ${idleSeconds} s`
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
    return 'the task was seen running'
  },
}

export const mannersChecks = [waits, tellsStart]

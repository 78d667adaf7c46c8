/** Careful tasks: one of them may have killed the worker before. */
import { type Check, expect } from '../check.ts'
import { isOf } from '../proxy.ts'
import { type Rig, shortLease, shortLeaseSeconds, type TestPayload } from '../rig.ts'
import { expectNext } from './outcomes.ts'

const careful: Check = {
  id: 'careful',
  title: 'begins a careful task only once its start was acknowledged, and with nothing else in hand',
  level: 'required',
  async run(rig) {
    const id = await carefulTask(rig, { do: 'sleep', seconds: 1.5 })
    const others = [await rig.enqueue({ do: 'succeed' }), await rig.enqueue({ do: 'succeed' })]
    let isTold = false
    rig.proxy.interfere({
      async after({ sync }) {
        const isFirst = !isTold && sync.started?.some(item => item.id === id)
        if (!isFirst) return 'pass'
        // Held back: a worker that does not wait for the answer begins now.
        await rig.pause(1)
        isTold = rig.journal.begun(id).length === 0
        return 'pass'
      },
    })
    rig.start()
    await rig.begun(id, 20)
    expect(isTold, 'it began before the start was acknowledged')
    for (const other of [id, ...others]) await rig.ended(other, 20)
    const words = rig.journal.entries()
    const meanwhile = words.slice(
      words.findIndex(entry => entry.word === 'begin' && entry.id === id) + 1,
      words.findIndex(entry => entry.word === 'end' && entry.id === id),
    )
    expect(meanwhile.length === 0, 'other tasks were in hand while the careful one ran')
    return 'waited for the acknowledgement, and ran it alone'
  },
}

const carefulLost: Check = {
  id: 'careful-lost',
  title: 'does not begin a careful task whose start was refused',
  level: 'required',
  async run(rig) {
    const id = await carefulTask(rig, { do: 'sleep', seconds: 0.1 })
    let isCalledOff = false
    rig.proxy.interfere({
      async before({ sync }) {
        if (!isCalledOff && sync.started?.some(item => item.id === id)) {
          isCalledOff = true
          await rig.engine.cancel(id, { mode: 'hard' })
        }
        return 'pass'
      },
    })
    rig.start()
    await rig.until('the worker heard that its start was refused', 20, () => {
      expect(rig.journal.begun(id).length === 0 || isCalledOff, 'it began without saying that it starts')
      return rig.proxy.syncs.some(
        ({ answer, heardAt }) => heardAt !== undefined && answer?.refused.some(isOf({ id, epoch: 2 })),
      )
    })
    await expectNext(rig)
    expect(rig.journal.begun(id).length === 0, 'it began the task although its start was refused')
    return 'left it, and did the next task'
  },
}

/** A task that was lost before its start: a worker that claims it and dies is played here. */
async function carefulTask(rig: Rig, payload: TestPayload): Promise<string> {
  const id = await rig.enqueue(payload, shortLease)
  await rig.engine.sync({ worker: `${rig.queue}-that-died`, queues: [rig.queue], claim: 1 })
  await rig.until('the task is to be claimed again', shortLeaseSeconds + 15, async () => {
    const { state } = await rig.engine.task(id)
    return state === 'retrying'
  })
  return id
}

export const carefulChecks = [careful, carefulLost]

/** Careful tasks: tasks that may have killed a worker before. */
import { type Check, expect } from '../check.ts'
import { isForLease } from '../proxy.ts'
import { type Rig, shortLease, shortLeaseSeconds, type TestPayload } from '../rig.ts'
import { expectNext } from './outcomes.ts'

const careful: Check = {
  id: 'careful',
  title: 'begins a careful task only once its start was acknowledged, and with nothing else in hand',
  level: 'required',
  async run(rig) {
    const id = await carefulTask(rig, { do: 'sleep', seconds: 1.5 })
    const others = [await rig.enqueue({ do: 'succeed' }), await rig.enqueue({ do: 'succeed' })]
    let isAnswered = false
    rig.proxy.interfere({
      async after({ sync }) {
        const isFirst = !isAnswered && sync.started?.some(item => item.id === id)
        if (!isFirst) return 'pass'
        // Delays the answer. A worker that does not wait for it begins the task now.
        await rig.pause(1)
        isAnswered = rig.journal.begun(id).length === 0
        return 'pass'
      },
    })
    rig.start()
    await rig.begun(id, 20)
    expect(isAnswered, 'it began before the start was acknowledged')
    for (const other of [id, ...others]) await rig.ended(other, 20)
    const entries = rig.journal.entries()
    const meanwhile = entries.slice(
      entries.findIndex(entry => entry.word === 'begin' && entry.id === id) + 1,
      entries.findIndex(entry => entry.word === 'end' && entry.id === id),
    )
    expect(meanwhile.length === 0, 'it held other tasks while the careful one ran')
    return 'waited for the acknowledgement, and ran the task alone'
  },
}

const carefulLost: Check = {
  id: 'careful-lost',
  title: 'does not begin a careful task whose start was refused',
  level: 'required',
  async run(rig) {
    const id = await carefulTask(rig, { do: 'sleep', seconds: 0.1 })
    let isCancelled = false
    rig.proxy.interfere({
      async before({ sync }) {
        if (!isCancelled && sync.started?.some(item => item.id === id)) {
          isCancelled = true
          await rig.engine.cancel(id, { mode: 'hard' })
        }
        return 'pass'
      },
    })
    rig.start()
    await rig.until('the worker received the refusal of its start', 20, () => {
      expect(rig.journal.begun(id).length === 0 || isCancelled, 'it began the task without reporting the start')
      return rig.proxy.syncs.some(
        ({ answer, heardAt }) => heardAt !== undefined && answer?.refused.some(isForLease({ id, epoch: 2 })),
      )
    })
    await expectNext(rig)
    expect(rig.journal.begun(id).length === 0, 'it began the task although its start was refused')
    return 'skipped the task, and completed the next one'
  },
}

/** A task that was lost before its start: this function claims it like a worker, and then lets the lease expire. */
async function carefulTask(rig: Rig, payload: TestPayload): Promise<string> {
  const id = await rig.enqueue(payload, shortLease)
  await rig.engine.sync({ worker: `${rig.queue}-that-died`, queues: [rig.queue], claim: 1 })
  await rig.until('the task can be claimed again', shortLeaseSeconds + 15, async () => {
    const { state } = await rig.engine.task(id)
    return state === 'retrying'
  })
  return id
}

export const carefulTaskChecks = [careful, carefulLost]

/** Starts: waiting for work, reporting starts, and careful tasks, which may have killed a worker before. */
import { type Check, expect } from '../check.ts'
import { isForLease } from '../proxy.ts'
import { type Rig, shortLease, shortLeaseSeconds, type TestPayload } from '../rig.ts'
import { expectNext } from './outcomes.ts'

const careful: Check = {
  id: 'careful',
  title: 'starts a careful task only after its start is acknowledged, and runs no other task at the same time',
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
  title: 'does not start a careful task if its start is refused',
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
  await rig.inState(id, 'retrying', shortLeaseSeconds + 15, 'the task can be claimed again')
  return id
}

export const carefulTaskChecks = [careful, carefulLost]

const idleSeconds = 5
const maxSyncs = 8

const waits: Check = {
  id: 'waits',
  title: 'waits for work with long polls (waitSeconds) instead of polling continuously',
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

const reportsStart: Check = {
  id: 'reports-start',
  title: 'reports the start of a long task, so that its state becomes running',
  level: 'advised',
  async run(rig) {
    const id = await rig.enqueue({ do: 'sleep', seconds: 8 })
    rig.start()
    await rig.begun(id)
    await rig.inState(id, 'running', 5, 'the task is running')
    return 'the task was reported as running'
  },
}

export const efficiencyChecks = [waits, reportsStart]

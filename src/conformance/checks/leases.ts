/** Leases: kept alive while the work goes on, and let go when they are gone or the work is called off. */
import type { HeldTask } from '../../protocol/tasks/sync.ts'
import { type Check, expect } from '../check.ts'
import { isOf } from '../proxy.ts'
import { expectOneRun, type Rig, shortLease, shortLeaseSeconds } from '../rig.ts'
import { expectNext } from './outcomes.ts'

const beats: Check = {
  id: 'beats',
  title: 'renews the lease of a task that runs for longer than one',
  level: 'required',
  async run(rig) {
    const seconds = 2 * shortLeaseSeconds + 1.5
    const id = await rig.enqueue({ do: 'sleep', seconds, output: 'slept' }, shortLease)
    rig.start()
    const epoch = await rig.begun(id)
    await rig.until('the task has ended under its first lease', seconds + 15, async () => {
      const task = await rig.engine.task(id)
      expect(task.state !== 'retrying' && task.epoch === epoch, 'its lease ran out while it worked: it was not renewed')
      return task.state === 'succeeded'
    })
    expectOneRun(rig, id)
    const beaten = rig.proxy.syncs.filter(({ sync }) => sync.beats?.some(isOf({ id, epoch })))
    return `${beaten.length} heartbeats in ${seconds} s kept a lease of ${shortLeaseSeconds} s`
  },
}

const softCancel: Check = {
  id: 'soft-cancel',
  title: 'stops a task that is called off, and says so within the grace',
  level: 'required',
  async run(rig) {
    const graceSeconds = 12
    const id = await rig.enqueue({ do: 'sleep', seconds: 60 }, { ...shortLease, graceSeconds })
    rig.start()
    const epoch = await rig.begun(id)
    await rig.engine.cancel(id, { mode: 'soft' })
    const task = await rig.ended(id, graceSeconds + 10)
    const end = await rig.endOf(id, epoch)
    expect(end?.cause !== 'cancel_grace_passed', `it worked on for the whole grace of ${graceSeconds} s`)
    const isSaid = end?.cause === 'reported_cancelled' || end?.cause === 'reported_succeeded'
    expect(isSaid, `it ended as ${task.state} by ${end?.cause}, not by a report of cancelled or succeeded`)
    await rig.until('the handler wrote its "end" line', 5, () => rig.journal.ended(id).includes(epoch))
    await expectNext(rig)
    return `reported as ${task.state}, and the next task was done`
  },
}

const hardCancel: Check = {
  id: 'lost-lease',
  title: 'stops when a heartbeat is refused with LEASE_LOST, and says no more under that lease',
  level: 'required',
  async run(rig) {
    const id = await rig.enqueue({ do: 'sleep', seconds: 60 }, shortLease)
    rig.start()
    const epoch = await rig.begun(id)
    await rig.engine.cancel(id, { mode: 'hard' })
    await rig.until('the handler stopped after its lease was taken away', shortLeaseSeconds + 6, () =>
      rig.journal.ended(id).includes(epoch),
    )
    const stoppedAt = performance.now()
    await rig.pause(shortLeaseSeconds / 2)
    expectSilence(rig, { id, epoch }, stoppedAt)
    await expectNext(rig)
    return 'stopped, said no more of it, and did the next task'
  },
}

const ownClock: Check = {
  id: 'own-clock',
  title: 'stops by itself when it cannot renew its lease, before another may begin',
  level: 'required',
  async run(rig) {
    const id = await rig.enqueue({ do: 'sleep', seconds: 60 }, shortLease)
    rig.start()
    const epoch = await rig.begun(id)
    rig.proxy.cut()
    const cutAt = performance.now()
    // The rescue takes the task when the lease is over, never before: what runs then runs beside the next holder.
    await rig.until('the engine took the lease back', shortLeaseSeconds + 15, async () => {
      const { state } = await rig.engine.task(id)
      return state === 'retrying'
    })
    await rig.until('the handler stopped, though nobody could tell it to', 2, () =>
      rig.journal.ended(id).includes(epoch),
    )
    const stoppedAt = performance.now()
    const afterSeconds = Math.round((stoppedAt - cutAt) / 1000)
    rig.proxy.mend()
    await rig.until('the task was begun again under the next lease', 20, () =>
      rig.journal.begun(id).includes(epoch + 1),
    )
    expectSilence(rig, { id, epoch }, stoppedAt)
    return `cut off, it had stopped within ${afterSeconds} s; then it claimed the task again`
  },
}

/** In flight when the refusal came. */
const inFlightMs = 1500

/**
 * Once a lease is known to be lost, it is neither renewed nor reported on. A try to give it back does no harm. The worker
 * knows at the latest when its handler has stopped: on a busy machine, the refusal may reach it late.
 */
function expectSilence({ proxy }: Rig, lease: HeldTask, stoppedAt: number): void {
  const wrong = proxy.reports(lease).find(({ settled }) => settled.outcome !== 'released')
  expect(wrong === undefined, `it reported ${wrong?.settled.outcome} under the lease that it had lost`)
  expect(proxy.reports(lease).length <= 3, 'it goes on reporting under the lease that it had lost')
  const refusedAt = proxy.syncs.find(
    ({ answer, heardAt }) => heardAt !== undefined && answer?.refused.some(isOf(lease)),
  )
  const since = Math.max(refusedAt?.heardAt ?? Infinity, stoppedAt) + inFlightMs
  const late = proxy.syncs.filter(({ sync, sentAt }) => sync.beats?.some(isOf(lease)) && sentAt > since)
  expect(late.length === 0, `it sent ${late.length} more heartbeats under the lease that it had lost`)
}

export const leaseChecks = [ownClock, beats, hardCancel, softCancel]

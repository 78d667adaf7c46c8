/** Leases: renewing them, and stopping when they are lost or the task is cancelled. */
import type { HeldTask } from '../../protocol/tasks/sync.ts'
import { type Check, expect } from '../check.ts'
import { isForLease } from '../proxy.ts'
import { expectOneRun, type Rig, shortLease, shortLeaseSeconds } from '../rig.ts'
import { expectNext } from './outcomes.ts'

const beats: Check = {
  id: 'beats',
  title: 'renews the lease of a task that runs longer than the lease',
  level: 'required',
  async run(rig) {
    const seconds = 2 * shortLeaseSeconds + 1.5
    const id = await rig.enqueue({ do: 'sleep', seconds, output: 'slept' }, shortLease)
    rig.start()
    const epoch = await rig.begun(id)
    await rig.until('the task has ended under its first lease', seconds + 15, async () => {
      const task = await rig.engine.task(id)
      expect(
        task.state !== 'retrying' && task.epoch === epoch,
        'its lease expired during the work, because it was not renewed',
      )
      return task.state === 'succeeded'
    })
    expectOneRun(rig, id)
    const heartbeats = rig.proxy.syncs.filter(({ sync }) => sync.beats?.some(isForLease({ id, epoch })))
    return `${heartbeats.length} heartbeats in ${seconds} s kept a lease of ${shortLeaseSeconds} s`
  },
}

const softCancel: Check = {
  id: 'soft-cancel',
  title: 'stops a cancelled task, and reports this within the grace period',
  level: 'required',
  async run(rig) {
    const graceSeconds = 12
    const id = await rig.enqueue({ do: 'sleep', seconds: 60 }, { ...shortLease, graceSeconds })
    rig.start()
    const epoch = await rig.begun(id)
    await rig.engine.cancel(id, { mode: 'soft' })
    const task = await rig.ended(id, graceSeconds + 10)
    const end = await rig.endOf(id, epoch)
    expect(end?.cause !== 'cancel_grace_passed', `it kept working for the whole grace period of ${graceSeconds} s`)
    const isReported = end?.cause === 'reported_cancelled' || end?.cause === 'reported_succeeded'
    expect(isReported, `it ended as ${task.state} by ${end?.cause}, not by a report of cancelled or succeeded`)
    await rig.until('the handler wrote its "end" line', 5, () => rig.journal.ended(id).includes(epoch))
    await expectNext(rig)
    return `reported as ${task.state}, and completed the next task`
  },
}

const hardCancel: Check = {
  id: 'lost-lease',
  title: 'stops a task when a heartbeat is refused with LEASE_LOST, and reports nothing more under that lease',
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
    return 'stopped, reported nothing more under the lease, and completed the next task'
  },
}

const ownClock: Check = {
  id: 'own-clock',
  title: 'stops a task when it cannot renew the lease, before another worker can start the task',
  level: 'required',
  async run(rig) {
    const id = await rig.enqueue({ do: 'sleep', seconds: 60 }, shortLease)
    rig.start()
    const epoch = await rig.begun(id)
    rig.proxy.cut()
    const cutAt = performance.now()
    // The engine takes the task back only after the lease has expired. A handler that still runs then would run at the
    // same time as the next one.
    await rig.inState(id, 'retrying', shortLeaseSeconds + 15, 'the engine took the lease back')
    await rig.until('the handler stopped, although the server could not tell it to', 2, () =>
      rig.journal.ended(id).includes(epoch),
    )
    const stoppedAt = performance.now()
    const afterSeconds = Math.round((stoppedAt - cutAt) / 1000)
    rig.proxy.mend()
    await rig.until('the task was begun again under the next lease', 20, () =>
      rig.journal.begun(id).includes(epoch + 1),
    )
    expectSilence(rig, { id, epoch }, stoppedAt)
    return `without a connection it stopped within ${afterSeconds} s; later it claimed the task again`
  },
}

/** Requests may have been in flight when the refusal arrived. */
const inFlightMs = 1500

/**
 * A worker that knows that a lease is lost must neither renew it nor report under it; only releasing it does no harm. It
 * knows at the latest when its handler has stopped: on a busy machine, the refusal may reach it late.
 */
function expectSilence({ proxy }: Rig, lease: HeldTask, stoppedAt: number): void {
  const wrong = proxy.reports(lease).find(({ settled }) => settled.outcome !== 'released')
  expect(wrong === undefined, `it reported ${wrong?.settled.outcome} under the lease that it had lost`)
  expect(proxy.reports(lease).length <= 3, 'it keeps reporting under the lease that it had lost')
  const refusedAt = proxy.syncs.find(
    ({ answer, heardAt }) => heardAt !== undefined && answer?.refused.some(isForLease(lease)),
  )
  const since = Math.max(refusedAt?.heardAt ?? Infinity, stoppedAt) + inFlightMs
  const late = proxy.syncs.filter(({ sync, sentAt }) => sync.beats?.some(isForLease(lease)) && sentAt > since)
  expect(late.length === 0, `it sent ${late.length} more heartbeats under the lease that it had lost`)
}

export const leaseChecks = [ownClock, beats, hardCancel, softCancel]

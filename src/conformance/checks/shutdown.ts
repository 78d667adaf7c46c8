/** Shutdown: on SIGTERM, stop claiming, finish or release held tasks, and exit with code 0. */
import { type Check, expect } from '../check.ts'
import { drainSeconds, type Rig, type WorkerProcess } from '../rig.ts'

/** The worker may repeat a claim that was in flight, to learn which tasks it got. */
const lastClaimMs = 2000
const exitSeconds = drainSeconds + 12

const shutdown: Check = {
  id: 'shutdown',
  title: 'stops claiming on SIGTERM, finishes or releases its tasks, and exits with code 0',
  level: 'required',
  async run(rig) {
    const id = await rig.enqueue({ do: 'sleep', seconds: 3 })
    const worker = rig.start()
    const epoch = await rig.begun(id)
    const terminatedAt = terminate(worker)
    await rig.pause(1)
    const late = await rig.enqueue({ do: 'succeed' })
    await expectExit(rig, worker)
    const end = await rig.endOf(id, epoch)
    const isSettled = end?.cause === 'reported_succeeded' || end?.cause === 'reported_released'
    expect(isSettled, `the held task was neither finished nor released: ${end?.cause ?? 'it is still held'}`)
    const claims = rig.proxy.syncs.filter(({ sync, sentAt }) => sync.claim && sentAt > terminatedAt + lastClaimMs)
    expect(claims.length === 0, `it continued to claim after SIGTERM (${claims.length} more times)`)
    await expectNotClaimed(rig, late)
    return `${end.to === 'succeeded' ? 'finished' : 'released'} the held task, and exited with code 0`
  },
}

const shutdownIdle: Check = {
  id: 'shutdown-idle',
  title: 'starts no task when it receives SIGTERM while waiting for work, and exits with code 0',
  level: 'required',
  async run(rig) {
    const worker = rig.start()
    await rig.until('the worker asked for work', 15, () => rig.proxy.syncs.some(({ sync }) => sync.claim))
    await rig.pause(1)
    terminate(worker)
    await rig.pause(0.2)
    const late = await rig.enqueue({ do: 'succeed' })
    await expectExit(rig, worker)
    await expectNotClaimed(rig, late)
    return 'exited with code 0, and claimed no later tasks'
  },
}

const drain: Check = {
  id: 'drain',
  title: 'releases tasks that it cannot finish within PAWL_DRAIN_SECONDS after SIGTERM',
  level: 'required',
  async run(rig) {
    const id = await rig.enqueue({ do: 'sleep', seconds: 90 })
    const worker = rig.start()
    const epoch = await rig.begun(id)
    terminate(worker)
    await expectExit(rig, worker)
    const end = await rig.endOf(id, epoch)
    expect(end?.cause === 'reported_released', `it was not released: ${end?.cause ?? 'it is still held'}`)
    const { failures, losses } = await rig.engine.task(id)
    expect(failures === 0 && losses === 0, 'the task was charged for the release')
    return 'released the task, and exited with code 0'
  },
}

function terminate(worker: WorkerProcess): number {
  worker.terminate()
  return performance.now()
}

async function expectExit(rig: Rig, worker: WorkerProcess): Promise<void> {
  const exit = await rig.until('the worker exited after SIGTERM', exitSeconds, () => worker.exit())
  expect(exit.code === 0, `it ended with ${exit.signal ?? `exit code ${exit.code}`} instead of 0`)
}

/** The task is free, and was neither begun nor charged. */
async function expectNotClaimed(rig: Rig, id: string): Promise<void> {
  expect(rig.journal.begun(id).length === 0, 'it began a task that was queued after SIGTERM')
  const { state, failures, losses } = await rig.engine.task(id)
  expect(state === 'queued' || state === 'retrying', `a task that was queued after SIGTERM is ${state}`)
  expect(failures === 0 && losses === 0, 'a task that was queued after SIGTERM was charged for it')
}

export const shutdownChecks = [shutdown, shutdownIdle, drain]

/** The whole database is away for longer than every lease, and comes back. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { startBabysitter } from '../../src/babysitter/babysitter.ts'
import { rescue } from '../../src/babysitter/rescue.ts'
import { type Engine, openEngine, type PawlOptions } from '../../src/engine/engine.ts'
import type { SyncPort } from '../../src/protocol/tasks/sync.ts'
import {
  defineTask,
  type Interrupted,
  type InterruptReason,
  startWorker,
  type TaskContext,
} from '../../src/worker/index.ts'
import { startCluster } from '../harness/cluster.ts'
import { ended, eventually, latch } from '../harness/eventually.ts'

const bounded = { timeout: 600_000 }
const kinds = ['stops when told', 'goes on', 'ends meanwhile'] as const
type Kind = (typeof kinds)[number]

/** A database cluster for this test, and engines on it. All end with the test. */
async function ownCluster(t: TestContext) {
  const cluster = await startCluster({ version: 18, settings: { fsync: 'off' } })
  const engines: Engine[] = []
  t.after(async () => {
    for (const engine of engines) await engine.close()
    await cluster.stop()
  })
  const open = async (options: PawlOptions = {}) => {
    const engine = await openEngine({ ...options, database: cluster.url })
    engines.push(engine)
    return engine
  }
  return { cluster, open }
}

/** A connection that can be paused: requests wait meanwhile. */
function heldLine() {
  let gate = latch()
  gate.open()
  const through = ({ putTaskType, sync }: SyncPort): SyncPort => ({
    putTaskType,
    sync: (request, signal) => gate.opened.then(() => sync(request, signal)),
  })
  const hold = () => {
    gate = latch()
  }
  return { through, hold, release: () => gate.open() }
}

/** Leases of two seconds, so that all of them run out while the store is away. */
function story() {
  const isBack = latch()
  const isAway = latch()
  const interrupted: InterruptReason[] = []
  const runs = new Map<string, number>()
  let endedMeanwhile = 0
  const work = defineTask({
    type: 'work',
    leaseSeconds: 5,
    heartbeatSeconds: 1,
    handler: async (kind: unknown, ctx: TaskContext) => {
      runs.set(ctx.id, (runs.get(ctx.id) ?? 0) + 1)
      const stopRequested = once(ctx.signal, 'abort').then(() => {
        interrupted.push((ctx.signal.reason as Interrupted).reason)
      })
      await isAway.opened
      if (kind === 'stops when told' && ctx.epoch === 1) {
        await stopRequested
        throw new Error('stopped as told')
      }
      if (kind === 'goes on') await isBack.opened
      else if (kind === 'ends meanwhile') endedMeanwhile += 1
      return 'done'
    },
  })
  return { work, isAway, isBack, interrupted, runs, endedMeanwhile: () => endedMeanwhile }
}

test(
  'a store away for longer than every lease costs nothing: live workers keep or regain their work',
  bounded,
  async t => {
    const { cluster, open } = await ownCluster(t)
    const { work, isAway, isBack, interrupted, runs, endedMeanwhile } = story()
    const rescues: Record<string, unknown>[] = []
    const engine = await open({ log: (word, facts) => void (word === 'chore.done' && rescues.push(facts)) })
    const line = heldLine()
    await engine.register(work)
    const items = Array.from({ length: 30 }, (_, n): { type: string; payload: Kind } => ({
      type: 'work',
      payload: kinds[n % 3]!,
    }))
    const ids = (await engine.enqueueMany(items)).map(({ id }) => id)
    const size = { concurrency: 12, buffer: 3, waitSeconds: 1, drainSeconds: 2 }
    await using _babysitter = startBabysitter(engine, [rescue({ heartbeatSeconds: 1, beginsBlind: false })])
    await using one = startWorker(line.through(await open()), [work], size)
    await using other = startWorker(line.through(await open()), [work], size)
    await eventually('all is in hand, and twenty-four run on record', async () => {
      const running = await engine.tasks({ state: 'running' })
      return one.inHand() + other.inHand() === 30 && running.items.length === 24
    })
    const begun = (await engine.tasks({ state: 'running' })).items
    const kept = begun.filter(({ payload }) => payload !== 'stops when told').map(({ id }) => id)

    await cluster.kill()
    isAway.open()
    await eventually(
      'handlers stop by their own clocks',
      () => interrupted.filter(why => why === 'lease-lost').length >= 16,
    )
    await eventually('others end while nobody can be told', () => endedMeanwhile() >= 8)
    // The babysitter is the first to reach the store again, when every lease in it has run out.
    line.hold()
    rescues.length = 0
    await cluster.restart()
    assert.equal((await eventually('the babysitter looks', () => rescues[0])).rescued, 0)
    line.release()
    isBack.open()

    for (const id of ids) {
      const { state, epoch, failures, losses } = await ended(engine, id)
      assert.deepEqual([state, failures, losses], ['succeeded', 0, 0])
      if (kept.includes(id)) assert.deepEqual([epoch, runs.get(id)], [1, 1])
      const { items: events } = await engine.taskEvents(id)
      assert.equal(events.filter(({ type }) => type === 'task.succeeded').length, 1)
    }
    assert.deepEqual(new Set(interrupted), new Set(['lease-lost']))
    assert.equal(kept.length, 16)
    assert.deepEqual(await engine.brokenRules(), [])
  },
)

test(
  'a store that goes away in the middle of a transaction ends the transaction, not the process',
  bounded,
  async t => {
    const { cluster, open } = await ownCluster(t)
    const engine = await open()
    const isAway = { code: 'STORE_UNAVAILABLE' }
    const broken = engine.transaction(async tx => {
      await engine.enqueue('work', 1, { tx })
      await cluster.kill()
      await assert.rejects(engine.enqueue('work', 2), isAway)
      await engine.enqueue('work', 3, { tx, idempotencyKey: 'three' })
    })
    await assert.rejects(broken, isAway)
    await cluster.restart()
    assert.deepEqual((await engine.tasks()).items, [])
    const { id } = await engine.enqueue('work', 4)
    assert.equal((await engine.task(id)).state, 'queued')
  },
)

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { latch } from '../../../test/harness/eventually.ts'
import { fresh } from '../../../test/harness/fresh.ts'
import { taskIn } from '../../../test/harness/task-in.ts'
import { Problem } from '../../kernel/problem.ts'
import type { HeldTask, SyncRequest } from '../../protocol/tasks/sync.ts'
import type { Engine } from '../engine.ts'
import type { Refused, ReporterOf } from '../retry.ts'
import { mergedReports, mergeReports } from './merge-reports.ts'
import { sync } from './sync.ts'

const task = (id: string): HeldTask => ({ id, epoch: 1 })
const lost = (item: HeldTask): Refused => ({ item, refusal: { ...item, code: 'LEASE_LOST', message: '' } })
const reporter = (worker: string) => ({ worker, queues: null })
const idsOf = (items: readonly HeldTask[]) => items.map(({ id }) => id)

/** Holds every batch until it is released, and refuses tasks named `bad`. */
function slowStore() {
  const batches: string[][] = []
  const gate = latch()
  const write = async (items: readonly HeldTask[], speakerOf: ReporterOf): Promise<Refused[]> => {
    batches.push(items.map(item => `${speakerOf(item).worker}:${item.id}`))
    await gate.opened
    return items.filter(({ id }) => id.startsWith('bad')).map(lost)
  }
  return { batches, gate, report: mergeReports(write) }
}

test('what arrives while batches are in flight goes together with the next, and each asker has its own answer', async () => {
  const { batches, gate, report } = slowStore()
  const answers: ReturnType<typeof report>[] = []
  for (const worker of ['a', 'b', 'c', 'd', 'e']) {
    answers.push(report([task(`good ${worker}`), task(`bad ${worker}`)], reporter(worker)))
    await nextTurn()
  }
  assert.deepEqual(batches, [
    ['a:good a', 'a:bad a'],
    ['b:good b', 'b:bad b'],
  ])
  gate.open()
  const refused = await Promise.all(answers)
  assert.deepEqual(refused.map(idsOf), [['bad a'], ['bad b'], ['bad c'], ['bad d'], ['bad e']])
  assert.equal(batches.length, 3)
  assert.equal(batches[2]!.length, 6)
})

test('two askers that speak of the same lease are each told what became of their own word', async () => {
  const { gate, report } = slowStore()
  const answers = ['a', 'b', 'c', 'd'].map(worker => report([task('bad')], reporter(worker)))
  gate.open()
  assert.deepEqual((await Promise.all(answers)).map(idsOf), [['bad'], ['bad'], ['bad'], ['bad']])
})

test('an asker with nothing to say waits for nobody', async () => {
  const { report } = slowStore()
  void report([task('a')], reporter('a'))
  void report([task('b')], reporter('b'))
  assert.deepEqual(await report([], reporter('c')), [])
})

test('what one asker breaks is broken for it alone; a store that is away is away for all', async () => {
  const gate = latch()
  const report = mergeReports(async (items: readonly HeldTask[]) => {
    await gate.opened
    if (items.some(({ id }) => id === 'poison')) throw new Error('a bug')
    if (items.some(({ id }) => id === 'away')) throw new Problem('STORE_UNAVAILABLE')
    return []
  })
  const first = ['1', '2'].map(id => report([task(id)], reporter('w')))
  const [good, poison] = [report([task('good')], reporter('a')), report([task('poison')], reporter('b'))]
  gate.open()
  await Promise.all([...first, good])
  await assert.rejects(poison, /a bug/)
  await assert.rejects(report([task('away')], reporter('a')), /STORE_UNAVAILABLE|cannot be reached/)
})

test('reports of many workers at once are all recorded, each under the name of its worker', async t => {
  const run = await fresh(t)
  const sync = mergingSync(run.engine)
  await run.engine.enqueueMany(Array.from({ length: 40 }, () => ({ type: 'a', retry: { attempts: 1 } })))
  const { claimed } = await run.sync({ queues: ['a'], claim: 40 })
  const stranger = await taskIn(run, 'queued')
  const answers = await Promise.all(
    claimed.map(({ id, epoch }, index) => {
      const outcome = (['succeeded', 'failed', 'released', 'skipped'] as const)[index % 4]!
      const error = outcome === 'failed' ? { error: { message: 'x' } } : {}
      const settled = [
        { id, epoch, outcome, ...error },
        { id: stranger.id, epoch: 99, outcome: 'succeeded' as const },
      ]
      return sync({ worker: `w${index}`, started: [{ id, epoch }], settled })
    }),
  )
  for (const { refused } of answers) assert.deepEqual(idsOf(refused), [stranger.id])
  for (const [index, { id }] of claimed.entries()) {
    if (index % 4 === 0) continue
    const { items } = await run.engine.taskEvents(id)
    const end = items.find(({ cause }) => cause?.startsWith('reported_'))
    assert.equal(end?.actor, `worker:w${index}`)
  }
})

test('starts and beats of many workers at once are all recorded', async t => {
  const run = await fresh(t)
  const sync = mergingSync(run.engine)
  await run.engine.enqueueMany(Array.from({ length: 30 }, () => ({ type: 'a' })))
  const { claimed } = await run.sync({ queues: ['a'], claim: 30 })
  await Promise.all(
    claimed.map(({ id, epoch }, index) =>
      sync({ worker: `w${index}`, started: [{ id, epoch }], beats: [{ id, epoch, progress: index }] }),
    ),
  )
  for (const [index, { id }] of claimed.entries()) {
    const task = await run.engine.task(id)
    assert.deepEqual([task.state, task.progress], ['running', index])
    const { items } = await run.engine.taskEvents(id)
    assert.equal(items.at(-1)!.actor, `worker:w${index}`)
  }
})

function mergingSync({ context }: Engine) {
  const reports = mergedReports(context)
  return (request: SyncRequest) => sync(context, request, undefined, { reports })
}

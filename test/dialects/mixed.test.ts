/** One job, read in all five vocabularies at once while workers drive it: they never contradict each other or Pawl. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inVocabulary } from '../../src/cli/vocabulary.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { dialectNames } from '../../src/protocol/dialects.ts'
import type { PawlApi } from '../../src/protocol/operations.ts'
import type { ClaimedTask } from '../../src/protocol/tasks/sync.ts'
import { eventually } from '../harness/eventually.ts'
import { type Served, served } from '../harness/served.ts'
import { type Watch, watch } from './all-eyes.ts'
import { type Entity, wordsFor } from './words-of-seeds.ts'

const bounded = { timeout: 600_000 }

type Handle = (task: ClaimedTask) => ['succeed' | 'fail' | 'skip', object] | 'set aside'

/** A worker that takes one step at a time. The job is read in all vocabularies after each step. */
async function work(
  engine: Engine,
  seen: Watch,
  worker: string,
  queues: string[],
  handle: Handle,
  isOver: () => boolean,
) {
  while (!isOver()) {
    const [task] = await engine.claims({ worker, queues, waitSeconds: 0.05 })
    if (task === undefined) continue
    const { id, epoch } = task
    const readEverywhere = async () => {
      const { stageId, jobId } = await engine.task(id)
      await seen.at('task', id)
      await seen.at('stage', stageId!)
      await seen.at('job', jobId!)
      await seen.follow()
    }
    await readEverywhere()
    await engine.start(id, epoch)
    await readEverywhere()
    const outcome = handle(task)
    if (outcome === 'set aside') await engine.deadLetter(id, { reasonCode: 'policy_violation', epoch })
    else await engine[outcome[0]](id, epoch, outcome[1] as never)
    await readEverywhere()
  }
}

const no = { error: { message: 'no' } }
const never = { error: { message: 'never', permanent: true } }

/** Every expected state was seen, and the feed had every event. */
async function checkAll(run: Served, seen: Watch, id: string, wanted: readonly string[]): Promise<void> {
  const { engine } = run
  const { items: tasks } = await engine.jobTasks(id, { limit: 1000 })
  const { stages, seq } = await engine.job(id)
  const ends = [{ entity: 'job', id, seq }, ...stages.map(one => ({ entity: 'stage', ...one }))].concat(
    tasks.map(one => ({ entity: 'task', ...one })),
  )
  await eventually('the feed has told all', async () => {
    await seen.follow()
    return ends.every(one => seen.seenEvents.has(`${one.entity} ${one.id} ${one.seq}`))
  })
  for (const { entity, id, seq } of ends) {
    for (let n = 1; n <= seq; n++)
      assert.ok(seen.seenEvents.has(`${entity} ${id} ${n}`), `event ${n} of ${entity} ${id}`)
  }
  assert.deepEqual(
    wanted.filter(state => !seen.states.has(state)),
    [],
  )
}

test('a job with retries, skips, a gate, a pause and failures that ends as partial', bounded, async t => {
  const run = await served(t)
  const { engine } = run
  const seen = await watch(run)
  const { id } = await engine.submit({
    name: 'mixed',
    stages: [
      {
        name: 'extract',
        task: 'extract',
        payloads: [0, 1, 2, 3, 4, 5],
        retry: { attempts: 2, delaySeconds: 60, jitter: false },
        tolerate: { percent: 50 },
      },
      { name: 'check', task: 'check', payload: 0, onFailure: 'continue' },
      { name: 'review', gate: true, task: 'review', payload: 0 },
      { name: 'extra', task: 'extra', payload: 0, when: 'false', needs: ['review'] },
      { name: 'publish', task: 'publish', payloads: [0, 1, 2], needs: ['review'] },
    ],
  })
  const { stages } = await engine.job(id)
  for (const stage of stages) await seen.at('stage', stage.id)
  for (const task of (await engine.jobTasks(id)).items) await seen.at('task', task.id)
  const failures: Record<number, ReturnType<Handle>> = {
    1: ['skip', { reason: 'seen' }],
    2: 'set aside',
    3: ['fail', never],
  }
  const handle: Handle = ({ type, payload, attempt }) => {
    if (type === 'check') return ['fail', never]
    if (type !== 'extract') return ['succeed', { output: payload }]
    return payload === 0 && attempt === 1 ? ['fail', no] : (failures[payload as number] ?? ['succeed', {}])
  }
  let isOver = false
  const queues = ['extract', 'check', 'review', 'extra', 'publish']
  const crew = ['ada', 'bob', 'cy'].map(name => work(engine, seen, name, queues, handle, () => isOver))
  const operating = async () => {
    await eventually('it runs', async () => (await engine.job(id)).state === 'running')
    await engine.pauseJob(id)
    await seen.at('job', id)
    await engine.resumeJob(id)
    await eventually('a retry was seen', () => seen.states.has('task retrying'))
    await run.advance(120)
    await eventually('it waits for approval', async () => (await engine.stage(stages[2]!.id)).state === 'waiting')
    await seen.follow()
    await seen.at('stage', stages[2]!.id)
    await engine.approve(stages[2]!.id)
    await eventually('it has ended', async () => (await engine.job(id)).endedAt !== null)
  }
  await Promise.all([
    ...crew,
    operating().finally(() => {
      isOver = true
    }),
  ])
  assert.equal((await engine.job(id)).state, 'partial')
  await checkAll(run, seen, id, [
    ...['blocked', 'queued', 'assigned', 'running', 'retrying'].map(state => `task ${state}`),
    ...['succeeded', 'skipped', 'failed', 'dead_lettered'].map(state => `task ${state}`),
    ...['created', 'pending', 'running', 'waiting', 'succeeded', 'partial', 'failed', 'skipped'].map(
      one => `stage ${one}`,
    ),
    ...['running', 'paused', 'partial'].map(state => `job ${state}`),
  ])
})

test('a job that fails while work is in hand, stops, and is undone', bounded, async t => {
  const run = await served(t)
  const { engine } = run
  const seen = await watch(run)
  const { id, stages } = await engine.submit({
    name: 'undone',
    stages: [
      { name: 'a', task: 'a', payload: 0, compensate: { task: 'undo-a' } },
      { name: 'b', task: 'b', payload: 0, needs: ['a'] },
      { name: 'c', task: 'c', payload: 0, needs: ['a'] },
      { name: 'd', task: 'd', payload: 0, needs: ['b'], gate: true },
    ],
  })
  const readEverywhere = async () => {
    await seen.at('job', id)
    for (const stage of (await engine.job(id)).stages) await seen.at('stage', stage.id)
    for (const task of (await engine.jobTasks(id)).items) await seen.at('task', task.id)
    await seen.follow()
  }
  const claimed = async (queue: string) => {
    const [task] = await engine.claims({ worker: 'w', queues: [queue], start: true })
    await readEverywhere()
    return task!
  }
  await readEverywhere()
  const first = await claimed('a')
  await engine.succeed(first.id, first.epoch)
  const [bad, inHand] = [await claimed('b'), await claimed('c')]
  await engine.fail(bad.id, bad.epoch, never)
  await readEverywhere()
  assert.equal((await engine.job(id)).state, 'stopping')
  await engine.cancelled(inHand.id, inHand.epoch)
  await readEverywhere()
  assert.equal((await engine.job(id)).state, 'compensating')
  const undoing = await claimed('undo-a')
  await engine.succeed(undoing.id, undoing.epoch)
  await readEverywhere()
  assert.equal((await engine.job(id)).state, 'failed')
  assert.equal((await engine.stage(stages[3]!.id)).state, 'cancelled')
  await checkAll(run, seen, id, [
    ...['stopping', 'compensating', 'failed'].map(state => `job ${state}`),
    ...['stopping', 'failed', 'cancelled'].map(state => `stage ${state}`),
    'task cancelled',
  ])
})

test('the feed tells the same events in every vocabulary, in the same order, and each in its words', async t => {
  const run = await served(t)
  const { engine } = run
  const seen = await watch(run)
  await engine.submit({
    name: 'told',
    stages: [{ name: 'a', task: 'a', payloads: [0, 1], retry: { delaySeconds: 0 } }],
  })
  const handle: Handle = ({ payload, attempt }) => (payload === 0 && attempt === 1 ? ['fail', no] : ['succeed', {}])
  const isDone = async () => (await engine.jobs({ state: 'succeeded' })).items.length === 1
  let isOver = false
  await Promise.all([
    work(engine, seen, 'ada', ['a'], handle, () => isOver),
    eventually('it has succeeded', isDone).finally(() => {
      isOver = true
    }),
  ])
  const readEvents = async (api: Pick<PawlApi, 'events'>) => (await api.events({})).items as readonly WordedEvent[]
  const ours = await eventually('all is told', async () => {
    const items = await readEvents(run.client)
    return items.at(-1)?.type === 'job.succeeded' && items
  })
  for (const dialect of dialectNames) {
    const theirs = await readEvents(inVocabulary(run.client, dialect))
    assert.deepEqual(
      theirs.map(event => event.id),
      ours.map(event => event.id),
    )
    for (const [index, { to }] of theirs.entries()) {
      const { entity, entityId, seq, to: state, ts } = ours[index]!
      const right = wordsFor(dialect, entity, { id: entityId, seq, state, runAt: ts }, [Date.parse(ts), 0])
      assert.ok(right.includes(to), `${dialect}: ${entity} ${state} is ${to}`)
    }
  }
})

interface WordedEvent {
  readonly id: string
  readonly type: string
  readonly entity: Entity
  readonly entityId: string
  readonly seq: number
  readonly to: string
  readonly ts: string
}

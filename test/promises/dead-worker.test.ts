/** Workers in separate processes, stopped and killed at the worst moment. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { rescue } from '../../src/babysitter/rescue.ts'
import type { TaskState } from '../../src/kernel/task.ts'
import { defineTask, startWorker } from '../../src/worker/index.ts'
import type { WorkerProgram } from '../faults/programs/worker.ts'
import { needsServer } from '../harness/databases.ts'
import { ended, eventually } from '../harness/eventually.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { startProgram } from '../harness/program.ts'

const bounded = { timeout: 600_000 }
const short = { leaseSeconds: 5, heartbeatSeconds: 1, retry: { delaySeconds: 0 } }

interface Line {
  readonly word: string
  readonly parts?: readonly string[]
  readonly refused?: readonly string[]
  readonly code?: string
}

function startWorkerProcess(t: TestContext, { url, schema }: Fresh, size: { concurrency: number; buffer: number }) {
  const ask: WorkerProgram = { database: url!, schema, ...size }
  return startProgram<Line>(t, 'faults/programs/worker.js', ask, line => JSON.parse(line))
}

async function queue({ engine }: Fresh, payloads: readonly string[]): Promise<string[]> {
  await engine.putTaskType('work', short)
  const queued = await engine.enqueueMany(payloads.map(payload => ({ type: 'work', payload })))
  return queued.map(({ id }) => id)
}

async function statesOf({ engine }: Fresh, ids: readonly string[]): Promise<TaskState[]> {
  return Promise.all(ids.map(async id => (await engine.task(id)).state))
}

/**
 * Moves the clock until these tasks are taken back from a worker that sends no more heartbeats. Its last statement may
 * still be running in the database: it holds a row, or renews a lease after the clock has moved. Then one run is not
 * enough.
 */
async function takeBack(story: Fresh, ids: readonly string[]): Promise<void> {
  const chore = rescue({ beginsBlind: false })
  await eventually('nobody holds the tasks', async () => {
    await story.advance(10)
    while ((await chore.run(story.engine.context)).more === true);
    const states = await statesOf(story, ids)
    return !states.includes('assigned') && !states.includes('running')
  })
}

test('a worker that was stopped while its task went to another changes nothing, and is told LEASE_LOST', {
  ...bounded,
  ...needsServer(),
}, async t => {
  const story = await fresh(t)
  const { engine, sync } = story
  const [id] = await queue(story, ['linger'])
  const zombie = startWorkerProcess(t, story, { concurrency: 1, buffer: 0 })
  await eventually('it runs there', async () => (await statesOf(story, [id!]))[0] === 'running')

  zombie.signal('SIGSTOP')
  await takeBack(story, [id!])
  await sync({ worker: 'heir', queues: ['work'], claim: 1 })
  await sync({ worker: 'heir', started: [{ id: id!, epoch: 2 }] })
  const wholeTask = async () => ({ ...(await engine.task(id!)), events: (await engine.taskEvents(id!)).items })
  const before = await wholeTask()
  assert.deepEqual([before.state, before.owner, before.epoch, before.losses], ['running', 'heir', 2, 1])

  zombie.signal('SIGCONT')
  const refusedOnly = ({ refused }: Line) => refused?.length === 1 && refused[0] === 'LEASE_LOST'
  const refusedFor = (part: string) => (line: Line) => line.parts?.includes(part) === true && refusedOnly(line)
  await zombie.printed('its heartbeat was refused', refusedFor('beats'))
  await zombie.printed('its settle was refused', refusedFor('settled'))
  assert.equal(
    (await zombie.printed('its checkpoint was refused', line => line.word === 'checkpoint')).code,
    'LEASE_LOST',
  )
  assert.deepEqual(await wholeTask(), before)

  const { refused } = await sync({
    worker: 'heir',
    settled: [{ id: id!, epoch: 2, outcome: 'succeeded', output: 'mine' }],
  })
  assert.deepEqual(refused, [])
  const { state, output, progress, checkpoint } = await engine.task(id!)
  assert.deepEqual([state, output, progress, checkpoint], ['succeeded', 'mine', null, null])
})

test('a worker killed in the middle of a batch: all runs again, and what it had not begun pays nothing', {
  ...bounded,
  ...needsServer(),
}, async t => {
  const story = await fresh(t)
  const { engine } = story
  const ids = await queue(
    story,
    Array.from({ length: 7 }, () => 'hang'),
  )
  const victim = startWorkerProcess(t, story, { concurrency: 2, buffer: 5 })
  await eventually('two run and five wait in its buffer', async () => {
    const states = await statesOf(story, ids)
    const count = (state: TaskState) => states.filter(one => one === state).length
    return count('running') === 2 && count('assigned') === 5
  })
  const wereRunning = (await engine.tasks({ state: 'running' })).items.map(({ id }) => id)

  victim.signal('SIGKILL')
  await victim.ended
  await takeBack(story, ids)
  assert.deepEqual(new Set(await statesOf(story, ids)), new Set(['retrying']))

  const work = defineTask({ type: 'work', ...short, handler: () => 'done' })
  await using _heir = startWorker(engine, [work], { drainSeconds: 2, waitSeconds: 0.2 })
  for (const id of ids) {
    const { state, output, epoch, failures, losses } = await ended(engine, id)
    assert.deepEqual([state, output, epoch, failures], ['succeeded', 'done', 2, 0])
    assert.equal(losses, wereRunning.includes(id) ? 1 : 0)
  }
})

test('a payload that kills every worker is set aside as infrastructure_failure, and its neighbours succeed', {
  ...bounded,
  ...needsServer(),
}, async t => {
  const story = await fresh(t)
  const { engine } = story
  const [poison, ...neighbours] = await queue(story, ['die', ...Array.from({ length: 8 }, () => 'return')])
  let deaths = 0
  while ((await engine.task(poison!)).state !== 'dead_lettered') {
    assert.ok(deaths < 12, 'it must not kill for ever')
    const worker = startWorkerProcess(t, story, { concurrency: 2, buffer: 6 })
    await worker.ended
    deaths += 1
    await takeBack(story, [poison!, ...neighbours])
  }
  const { deadLetter, losses, failures } = await engine.task(poison!)
  assert.deepEqual([deadLetter?.reasonCode, losses, failures], ['infrastructure_failure', 3, 0])

  const last = startWorkerProcess(t, story, { concurrency: 2, buffer: 6 })
  for (const id of neighbours) {
    const task = await ended(engine, id)
    assert.deepEqual([task.state, task.losses, task.failures], ['succeeded', 0, 0])
  }
  last.signal('SIGKILL')
  await last.ended
})

test('with the default settings, the tasks of a silent worker can be claimed again within 25 s', async t => {
  const { engine, sync, advance } = await fresh(t)
  await engine.enqueueMany([
    { type: 'mail', payload: 'started' },
    { type: 'mail', payload: 'not started' },
  ])
  const [started, assigned] = (await sync({ queues: ['mail'], claim: 2 })).claimed
  await sync({ started: [{ id: started!.id, epoch: 1, agoMs: 0 }] })
  await advance(24)
  await rescue({ beginsBlind: false }).run(engine.context)
  // The default delay before a retry.
  await advance(1)
  const { claimed } = await sync({ worker: 'heir', queues: ['mail'], claim: 2 })
  assert.deepEqual(new Set(claimed.map(({ id }) => id)), new Set([started!.id, assigned!.id]))
  assert.deepEqual([(await engine.task(started!.id)).losses, (await engine.task(assigned!.id)).losses], [1, 0])
})

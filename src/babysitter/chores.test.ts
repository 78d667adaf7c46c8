import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { needsServer } from '../../test/harness/databases.ts'
import { type Fresh, fresh } from '../../test/harness/fresh.ts'
import { storyOf, taskIn } from '../../test/harness/task-in.ts'
import { openEngine } from '../engine/engine.ts'
import { keepDoing } from './chore.ts'
import { endGraces, expireTasks, retention, watchIntegrity, watchQueues } from './chores.ts'

const states = ({ engine }: Fresh, tasks: readonly { id: string }[]) =>
  Promise.all(tasks.map(async ({ id }) => (await engine.task(id)).state))

/** From now on the database rejects every change of this task. */
function makeUnruly({ sql }: Fresh, id: string): Promise<void> {
  return sql.script(`
    create function pawl.raise() returns trigger language plpgsql as 'begin raise exception ''not this one''; end';
    create trigger not_this_one before update or delete on pawl.task for each row when (old.id = '${id}')
      execute function pawl.raise()`)
}

test('what is not done in its time expires, waiting or held, and its worker is fenced off', async t => {
  const run = await fresh(t)
  const options = { expireInSeconds: 1000 }
  const mortal = [
    await taskIn(run, 'queued', options),
    await taskIn(run, 'queued', { ...options, runInSeconds: 50_000 }),
    await taskIn(run, 'retrying', options),
    await taskIn(run, 'assigned', options),
    await taskIn(run, 'running', options),
  ]
  const others = [
    await taskIn(run, 'queued'),
    await taskIn(run, 'queued', { expireInSeconds: 5000 }),
    await taskIn(run, 'succeeded', options),
  ]
  await run.advance(900)
  assert.equal((await expireTasks.run(run.engine.context)).expired, 0)
  await run.advance(200)
  assert.equal((await expireTasks.run(run.engine.context)).expired, 5)
  assert.deepEqual(new Set(await states(run, mortal)), new Set(['expired']))
  assert.deepEqual(await states(run, others), ['queued', 'queued', 'succeeded'])
  const { id, epoch } = mortal[4]!
  const { refused } = await run.sync({ settled: [{ id, epoch, outcome: 'succeeded' }] })
  assert.equal(refused[0]!.code, 'LEASE_LOST')
  assert.deepEqual((await run.sync({ queues: mortal.map(({ queue }) => queue), claim: 10 })).claimed, [])
  assert.equal((await expireTasks.run(run.engine.context)).expired, 0)
})

test('a soft cancel becomes hard when its grace has passed, not before', async t => {
  const run = await fresh(t)
  const [slow, quick, silent] = [
    await taskIn(run, 'running', { graceSeconds: 3000 }),
    await taskIn(run, 'running', { graceSeconds: 500 }),
    await taskIn(run, 'assigned', { graceSeconds: 500 }),
  ]
  for (const { id } of [slow, quick, silent]) await run.engine.cancel(id)
  await run.advance(400)
  assert.equal((await endGraces.run(run.engine.context)).cancelled, 0)
  await run.sync({ settled: [{ id: silent.id, epoch: 1, outcome: 'succeeded' }] })
  await run.advance(200)
  assert.equal((await endGraces.run(run.engine.context)).cancelled, 1)
  assert.deepEqual(await states(run, [slow, quick, silent]), ['running', 'cancelled', 'succeeded'])
  assert.equal((await storyOf(run, quick.id)).at(-1), 'cancelled by babysitter: cancel_grace_passed')
  await run.advance(2500)
  assert.equal((await endGraces.run(run.engine.context)).cancelled, 1)
  assert.equal((await endGraces.run(run.engine.context)).cancelled, 0)
})

test('ended tasks go when they have been kept for long enough, others never', async t => {
  const run = await fresh(t)
  await run.engine.putTaskType('brief', { keepSeconds: 5000 })
  const until = new Date(Date.now() + 40_000_000)
  const tasks = {
    plain: await taskIn(run, 'succeeded'),
    own: await taskIn(run, 'succeeded', { keepSeconds: 10_000 }),
    typed: await taskIn(run, 'failed', { type: 'brief' }),
    dated: await taskIn(run, 'failed', { keepSeconds: 1, keepUntil: until }),
    open: await taskIn(run, 'queued', { keepSeconds: 1 }),
    held: await taskIn(run, 'running', { keepSeconds: 1, keepUntil: new Date(1e12) }),
  }
  const chore = retention()
  const left = async () => {
    await chore.run(run.engine.context)
    const { items } = await run.engine.tasks()
    return Object.entries(tasks).flatMap(([name, { id }]) => (items.some(task => task.id === id) ? [name] : []))
  }
  assert.deepEqual(await left(), ['plain', 'own', 'typed', 'dated', 'open', 'held'])
  await run.advance(6000)
  assert.deepEqual(await left(), ['plain', 'own', 'dated', 'open', 'held'])
  await run.advance(5000)
  assert.deepEqual(await left(), ['plain', 'dated', 'open', 'held'])
  await run.advance(30_000)
  assert.deepEqual(await left(), ['plain', 'open', 'held'])
  await run.advance(14 * 86_400)
  assert.deepEqual(await left(), ['open', 'held'])
  await assert.rejects(run.engine.task(tasks.plain.id), { code: 'TASK_NOT_FOUND' })
})

test('what is of use only for a while is forgotten', async t => {
  const run = await fresh(t)
  const task = await taskIn(run, 'running', { keepSeconds: 1000 })
  await run.sync({ beats: [{ id: task.id, epoch: 1, progress: 1 }] })
  await run.sync({ session: randomUUID(), queues: ['a'], claim: 1, syncId: '1' })
  await run.engine.enqueue('a', null, { idempotencyKey: 'k', queue: 'b' })
  await run.sync({ settled: [{ id: task.id, epoch: 1, outcome: 'succeeded' }] })
  const forgotten = async () => {
    const { removed, pulses, keys, sessions } = await retention().run(run.engine.context)
    return { removed, pulses, keys, sessions }
  }
  assert.deepEqual(await forgotten(), { removed: 0, pulses: 0, keys: 0, sessions: 0 })
  await run.advance(86_410)
  assert.deepEqual(await forgotten(), { removed: 1, pulses: 1, keys: 1, sessions: 1 })
})

test('retention walks through a long table, stretch by stretch', async t => {
  const run = await fresh(t)
  const ids = (await run.engine.enqueueMany(Array.from({ length: 6000 }, () => ({ type: 'a', keepSeconds: 5 })))).map(
    ({ id }) => id,
  )
  for (let n = 0; n < 6; n++) {
    const { claimed } = await run.sync({ queues: ['a'], claim: 1000 })
    await run.sync({ settled: claimed.map(({ id, epoch }) => ({ id, epoch, outcome: 'succeeded' })) })
  }
  await run.advance(6)
  const chore = retention()
  const first = await chore.run(run.engine.context)
  assert.deepEqual([first.removed, first.more], [5000, true])
  const second = await chore.run(run.engine.context)
  assert.deepEqual([second.removed, second.more], [1000, false])
  await assert.rejects(run.engine.task(ids[0]!), { code: 'TASK_NOT_FOUND' })
})

test('retention finds an expired task behind many that are kept in one run', async t => {
  const run = await fresh(t)
  await run.engine.enqueueMany(Array.from({ length: 5000 }, () => ({ type: 'kept' })))
  const { id } = await run.engine.enqueue('a', 1, { keepSeconds: 5 })
  const { claimed } = await run.sync({ queues: ['a'], claim: 1 })
  await run.sync({ settled: [{ id, epoch: claimed[0]!.epoch, outcome: 'succeeded' }] })
  await run.advance(6)
  const { removed } = await retention().run(run.engine.context)
  assert.equal(removed, 1)
})

test('two babysitters at once end each task once', async t => {
  const run = await fresh(t)
  const other = await openEngine({ database: run.url!, schema: run.schema })
  t.after(() => other.close())
  const mortal = { type: 'a', expireInSeconds: 1 }
  const ids = (await run.engine.enqueueMany(Array.from({ length: 100 }, () => mortal))).map(({ id }) => id)
  const held = []
  for (let n = 0; n < 10; n++) held.push(await taskIn(run, 'running'))
  for (const { id } of held) await run.engine.cancel(id)
  await run.advance(31)
  const contexts = [run.engine.context, other.context, run.engine.context, other.context]
  const sum = (done: Record<string, unknown>[], name: string) =>
    done.reduce((total, did) => total + (did[name] as number), 0)
  assert.equal(sum(await Promise.all(contexts.map(context => expireTasks.run(context))), 'expired'), 100)
  assert.equal(sum(await Promise.all(contexts.map(context => endGraces.run(context))), 'cancelled'), 10)
  for (const id of ids) assert.equal((await run.engine.task(id)).seq, 2)
  for (const { id } of held) assert.equal((await run.engine.task(id)).seq, 5)
})

test('times to live of tasks that have ended do not keep others waiting', async t => {
  const run = await fresh(t)
  const items = (count: number, expireInSeconds: number) =>
    Array.from({ length: count }, () => ({ type: 'a', expireInSeconds }))
  await run.engine.enqueueMany([...items(500, 10), ...items(1, 20)])
  const { claimed } = await run.sync({ queues: ['a'], claim: 500 })
  await run.sync({ settled: claimed.map(({ id, epoch }) => ({ id, epoch, outcome: 'succeeded' })) })
  await run.advance(60)
  const runChore = async () => {
    const { expired, more } = await expireTasks.run(run.engine.context)
    return [expired, more]
  }
  assert.deepEqual(
    [await runChore(), await runChore()],
    [
      [0, true],
      [1, false],
    ],
  )
})

test('times to live that nobody can act on are looked at again, but not at once', needsServer(), async t => {
  const run = await fresh(t)
  const ids = await run.engine.enqueueMany(Array.from({ length: 500 }, () => ({ type: 'a', expireInSeconds: 10 })))
  await run.advance(60)
  await run.sql.begin(async tx => {
    await tx`select from pawl.task where id = any(${ids.map(({ id }) => id)}::uuid[]) for update`
    const { expired, more } = await expireTasks.run(run.engine.context)
    assert.deepEqual([expired, more], [0, false])
  })
  assert.equal((await expireTasks.run(run.engine.context)).expired, 500)
})

test('one task that cannot be written never stops a chore', async t => {
  const logged: unknown[] = []
  const run = await fresh(t, { log: (word, facts) => logged.push([word, facts.id]) })
  const mortal = []
  const stopping = []
  for (let n = 0; n < 5; n++) mortal.push(await taskIn(run, 'queued', { expireInSeconds: 5 }))
  for (let n = 0; n < 5; n++) stopping.push(await taskIn(run, 'running'))
  for (const { id } of stopping) await run.engine.cancel(id)
  await run.advance(31)
  await makeUnruly(run, mortal[2]!.id)
  const expired = await expireTasks.run(run.engine.context)
  assert.deepEqual([expired.expired, expired.failed], [4, 1])
  await run.sql.script('drop function pawl.raise cascade')
  await makeUnruly(run, stopping[0]!.id)
  const ended = await endGraces.run(run.engine.context)
  assert.deepEqual([ended.cancelled, ended.failed], [4, 1])
  assert.deepEqual(logged, [
    ['task.unwritable', mortal[2]!.id],
    ['task.unwritable', stopping[0]!.id],
  ])
})

test('one task that cannot be removed never stops the retention', async t => {
  const run = await fresh(t)
  const tasks = []
  for (let n = 0; n < 5; n++) tasks.push(await taskIn(run, 'succeeded', { keepSeconds: 1 }))
  await makeUnruly(run, tasks[2]!.id)
  await run.advance(5)
  const { removed, failed } = await retention().run(run.engine.context)
  assert.deepEqual([removed, failed], [4, 1])
  assert.deepEqual(
    (await run.engine.tasks()).items.map(({ id }) => id),
    [tasks[2]!.id],
  )
})

test('the alarm names a queue whose work nobody does', async t => {
  const logged: Record<string, unknown>[] = []
  const log = (word: string, facts: Record<string, unknown>) => void (word === 'queue.stale' && logged.push(facts))
  const run = await fresh(t, { log })
  await run.engine.enqueueMany([{ type: 'a' }, { type: 'a' }, { type: 'b' }, { type: 'c', runInSeconds: 100 }])
  const serve = () => run.sync({ worker: 'w', session: randomUUID(), queues: ['b', 'd'], claim: 1, syncId: '1' })
  assert.equal((await watchQueues.run(run.engine.context)).stale, 0)
  await run.advance(35)
  await serve()
  await run.advance(26)
  assert.equal((await watchQueues.run(run.engine.context)).stale, 1)
  assert.deepEqual(
    logged.map(({ queue, due }) => [queue, due]),
    [['a', 2]],
  )
  assert.ok((logged[0]!.oldestSeconds as number) >= 61)
  assert.match(logged[0]!.todo as string, /Start one/)
})

test('the alarm names what breaks a rule', async t => {
  const logged: unknown[] = []
  const log = (word: string, facts: Record<string, unknown>) => void logged.push([word, facts.entityId])
  const run = await fresh(t, { log, rules: 'broken on purpose' })
  const { id } = await taskIn(run, 'queued')
  const healthy = await watchIntegrity.run(run.engine.context)
  assert.deepEqual([healthy.broken, logged], [0, []])
  await run.sql.script('truncate pawl.due')
  assert.equal((await watchIntegrity.run(run.engine.context)).broken, 1)
  assert.deepEqual(logged, [['integrity.broken', id]])
})

test('what is said of a task that cannot be written names its correlation', async t => {
  const logged: unknown[] = []
  const log = (word: string, { id, correlationId }: Record<string, unknown>) =>
    void logged.push([word, id, correlationId])
  const run = await fresh(t, { log })
  const { id } = await taskIn(run, 'queued', { expireInSeconds: 10, correlationId: 'order-7' })
  await makeUnruly(run, id)
  await run.advance(20)
  assert.equal((await expireTasks.run(run.engine.context)).failed, 1)
  assert.deepEqual(logged, [['task.unwritable', id, 'order-7']])
})

test('a look that fails is told, and the next one comes', async t => {
  const logged: unknown[] = []
  const run = await fresh(t, { log: (word, { chore, error }) => logged.push([word, chore, error]) })
  const stop = new AbortController()
  let runs = 0
  const odd = {
    name: 'odd',
    everySeconds: 0,
    run: async () => {
      runs += 1
      if (runs === 3) stop.abort()
      if (runs < 3) throw new Error(`no ${runs}`)
      return { found: 0 }
    },
  }
  await keepDoing(odd, run.engine.context, stop.signal)
  assert.deepEqual(logged, [
    ['chore.failed', 'odd', 'Error: no 1'],
    ['chore.failed', 'odd', 'Error: no 2'],
  ])
})

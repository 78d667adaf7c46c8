/** The options of stages and tasks that are added to a job, and the answers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../harness/fresh.ts'
import { claim, say } from '../harness/jobs.ts'
import { served } from '../harness/served.ts'

const trace = (digit: string) => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`

test('a task that is added may say for itself how it is retried, what it is for and whose trace it is in', async t => {
  const f = await fresh(t)
  const { id: jobId } = await f.engine.submit({
    name: 'j',
    traceparent: trace('1'),
    open: true,
    stages: [{ name: 'a', task: 'a', open: true, leaseSeconds: 600, retry: { attempts: 1, delaySeconds: 0 } }],
  })
  const [stage] = (await f.engine.job(jobId)).stages
  const { added } = await f.engine.addTasks(stage!.id, [
    { payload: 1 },
    { payload: 2, retry: { attempts: 2 }, metadata: { page: 7 }, traceparent: trace('2') },
    { payload: 3, traceparent: null, expireInSeconds: 60 },
  ])
  const tasks = await Promise.all(added.map(id => f.engine.task(id)))
  assert.deepEqual(
    tasks.map(({ payload, settings, metadata, traceparent }) => [payload, settings, metadata, traceparent]),
    [
      [1, { leaseSeconds: 600, retry: { attempts: 1, delaySeconds: 0 } }, {}, trace('1')],
      [2, { leaseSeconds: 600, retry: { attempts: 2, delaySeconds: 0 } }, { page: 7 }, trace('2')],
      [3, { leaseSeconds: 600, retry: { attempts: 1, delaySeconds: 0 }, expireInSeconds: 60 }, {}, null],
    ],
  )
  assert.ok(tasks[2]!.expireAt !== null && tasks[0]!.expireAt === null)
  const claimed = await claim(f, ['a'])
  assert.deepEqual(
    claimed.map(({ payload, traceparent }) => [payload, traceparent]),
    [
      [1, trace('1')],
      [2, trace('2')],
      [3, null],
    ],
  )
  await say(f, claimed.slice(1, 2), { outcome: 'failed', error: { message: 'no' } })
  assert.equal((await f.engine.task(added[1]!)).state, 'retrying')
  await say(f, claimed.slice(0, 1), { outcome: 'failed', error: { message: 'no' } })
  assert.equal((await f.engine.task(added[0]!)).state, 'dead_lettered')
})

test('a stage keeps data of its own and a trace that its tasks have, and a job the state of its trace', async t => {
  const { engine } = await fresh(t)
  const job = await engine.submit({
    name: 'j',
    traceparent: trace('1'),
    tracestate: 'rojo=1',
    stages: [
      { name: 'a', task: 'a', data: { width: 8 }, traceparent: trace('2') },
      { name: 'b', task: 'b' },
    ],
  })
  assert.equal(job.tracestate, 'rojo=1')
  assert.deepEqual(
    job.stages.map(({ data, traceparent }) => [data, traceparent]),
    [
      [{ width: 8 }, trace('2')],
      [null, null],
    ],
  )
  const { items } = await engine.jobTasks(job.id, { order: 'oldest' })
  assert.deepEqual(
    items.map(({ traceparent }) => traceparent),
    [trace('2'), trace('1')],
  )
})

test('a stage that is added without a name is called for what is done in it, and numbered if that is taken', async t => {
  const { engine } = await fresh(t)
  const { id } = await engine.submit({ name: 'j', open: true })
  const first = await engine.addStages(id, [{ task: 'a' }, { task: 'a' }, { queue: 'b', open: true }])
  assert.deepEqual(
    first.stages.map(stage => [stage.id, stage.name]),
    first.added.map((added, index) => [added, ['a', 'a 2', 'b'][index]]),
  )
  await engine.addStages(id, [{ name: 'a 3', task: 'c' }])
  // Each caller gets its own tasks, even if others add at the same time.
  const made = await Promise.all(Array.from({ length: 4 }, () => engine.addStages(id, [{ task: 'a' }])))
  const added = made.flatMap(job => job.added)
  const { stages } = await engine.job(id)
  assert.equal(new Set(added).size, 4)
  assert.deepEqual(
    stages.filter(stage => added.includes(stage.id)).map(stage => stage.name),
    ['a 4', 'a 5', 'a 6', 'a 7'],
  )
  await assert.rejects(engine.addStages(id, [{ open: true }]), { code: 'SPEC_INVALID' })
})

test('the tasks of a stage that names only its queue are of the type of that name', async t => {
  const { engine } = await fresh(t)
  const { id } = await engine.submit({ name: 'j', open: true })
  const { added } = await engine.addStages(id, [{ queue: 'b', open: true }])
  const { added: tasks } = await engine.addTasks(added[0]!, [{ payload: 1 }])
  const { type, queue } = await engine.task(tasks[0]!)
  assert.deepEqual([type, queue], ['b', 'b'])
})

test('asked again under its key, an addition is answered with the same ids and adds nothing', async t => {
  const { client } = await served(t)
  const { id } = await client.submit({ name: 'j', open: true })
  const addStage = () => client.addStages(id, [{ task: 'a', open: true }], { idempotencyKey: 's' })
  const { added } = await addStage()
  assert.deepEqual((await addStage()).added, added)
  const addTask = () => client.addTasks(added[0]!, [{ payload: 1, metadata: { a: 1 } }], { idempotencyKey: 't' })
  const { added: tasks } = await addTask()
  assert.deepEqual((await addTask()).added, tasks)
  assert.equal((await client.stageTasks(added[0]!, { total: true })).total, 1)
})

test('what may not be said of a task that is added is refused, and none of them is', async t => {
  const { engine } = await fresh(t)
  const { stages } = await engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a', open: true }] })
  const bad = (task: object) => engine.addTasks(stages[0]!.id, [{ payload: 1 }, task])
  await assert.rejects(bad({ retry: { attempts: 0 } }), { code: 'OPTION_INVALID' })
  await assert.rejects(bad({ traceparent: 'x' }), { code: 'OPTION_INVALID' })
  await assert.rejects(bad({ metadata: [1] }), { code: 'OPTION_INVALID' })
  await assert.rejects(bad({ metadata: { a: '\0' } }), { code: 'PAYLOAD_INVALID' })
  await assert.rejects(bad({ priority: 1 }), { code: 'OPTION_UNKNOWN' })
  assert.equal((await engine.stageTasks(stages[0]!.id, { total: true })).total, 0)
})

test('a clone does its tasks again as they were: of their own type, with their own retries and metadata', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'j', open: 'untilDone' })
  const { added } = await f.engine.addStages(id, [{ queue: 'a', open: 'untilDone', heartbeatSeconds: null }])
  await f.engine.addTasks(added[0]!, [
    { payload: 1, retry: { attempts: 1 }, metadata: { page: 7 } },
    { payload: 2, type: 'other' },
  ])
  await say(f, await claim(f, ['a']), 'failed')
  const clone = await f.engine.retryJob(id, { clone: true })
  const { items } = await f.engine.jobTasks(clone.id, { order: 'oldest' })
  assert.deepEqual(
    items.map(({ payload, type, metadata, settings }) => [payload, type, metadata, settings]),
    [
      [1, 'a', { page: 7 }, { heartbeatSeconds: null, retry: { attempts: 1 } }],
      [2, 'other', {}, { heartbeatSeconds: null }],
    ],
  )
})

test('the lease of a job is that of its stages, also of those added later, unless a stage has its own', async t => {
  const { engine } = await fresh(t)
  const stages = [
    { name: 'a', task: 'a' },
    { name: 'b', task: 'b', leaseSeconds: 600 },
  ]
  const { id, leaseSeconds } = await engine.submit({ name: 'j', open: true, leaseSeconds: 7200, stages })
  assert.equal(leaseSeconds, 7200)
  await engine.addStages(id, [{ name: 'c', task: 'c' }])
  await engine.submit({ id, ifThere: 'add', name: 'j', leaseSeconds: 30, stages: [{ name: 'd', task: 'd' }] })
  const { items } = await engine.jobTasks(id, { order: 'oldest' })
  assert.deepEqual(
    items.map(({ type, settings }) => [type, settings.leaseSeconds]),
    [
      ['a', 7200],
      ['b', 600],
      ['c', 7200],
      ['d', 7200],
    ],
  )
  assert.equal((await engine.submit({ name: 'k', stages })).leaseSeconds, null)
})

test('tasks may be kept in a stage that its job’s failure called off: they are cancelled, and come back with a retry', async t => {
  const f = await fresh(t)
  const stages = [
    { name: 'a', task: 'a', retry: { attempts: 1 }, deadLetter: 'never' as const },
    { name: 'b', task: 'b', open: 'untilDone' as const },
  ]
  const job = await f.engine.submit({ name: 'j', open: 'untilDone', stages })
  await say(f, await claim(f, ['a']), { outcome: 'failed', error: { message: 'no' } })
  const [, behind] = (await f.engine.job(job.id)).stages
  await assert.rejects(f.engine.addTasks(behind!.id, [{ payload: 1 }]), { code: 'MOVE_REFUSED' })
  const { added, progress, state } = await f.engine.addTasks(behind!.id, [{ payload: 1 }, { payload: 2 }], {
    ifCalledOff: 'keep',
  })
  assert.deepEqual([state, progress.total, progress.bad], ['cancelled', 2, 2])
  for (const id of added) assert.equal((await f.engine.task(id)).state, 'cancelled')
  await f.engine.retryJob(job.id)
  await say(f, await claim(f, ['a']), { outcome: 'succeeded' })
  assert.equal((await claim(f, ['b'])).length, 2)
})

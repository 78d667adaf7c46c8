/** Jobnik's own routes: the requests of its clients and the answers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobnikJob, JobnikStage } from './jobnik-client.ts'
import { jobnikServed } from './jobnik-in.ts'

const zeros = `00-${'0'.repeat(32)}-${'0'.repeat(16)}-00`
const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

test('a job of two stages goes from its creation to COMPLETED by Jobnik’s own calls', async t => {
  const { jobnik } = await jobnikServed(t)
  const job = await jobnik.createJob({ data: { url: 'x' }, userMetadata: { owner: 'ada' }, priority: 'HIGH' })
  const { id, creationTime, updateTime, ...rest } = job
  assert.deepEqual(rest, {
    name: 'images',
    data: { url: 'x' },
    userMetadata: { owner: 'ada' },
    traceparent: zeros,
    status: 'PENDING',
    percentage: 0,
    priority: 'HIGH',
  })
  const resize = await jobnik.createStage(id, 'resize', { data: { width: 8 }, userMetadata: { quality: 9 } })
  const summary = { pending: 0, inProgress: 0, completed: 0, failed: 0, created: 0, retried: 0, total: 0 }
  assert.deepEqual(resize, {
    id: resize.id,
    type: 'resize',
    data: { width: 8 },
    summary,
    jobId: id,
    order: 1,
    traceparent: zeros,
    userMetadata: { quality: 9 },
    percentage: 0,
    status: 'PENDING',
  })
  const publish = await jobnik.createStage(id, 'publish')
  assert.deepEqual([publish.order, publish.status], [2, 'CREATED'])
  const [one, two] = await jobnik.createTasks(resize.id, [
    { data: { n: 1 }, userMetadata: { batch: 'a' }, maxAttempts: 3 },
    { data: { n: 2 } },
  ])
  await jobnik.createTasks(publish.id, [{ data: {} }])
  assert.deepEqual(
    [one, two].map(task => [task!.data, task!.userMetadata, task!.maxAttempts, task!.attempts, task!.status]),
    [
      [{ n: 1 }, { batch: 'a' }, 3, 0, 'PENDING'],
      [{ n: 2 }, {}, 1, 0, 'PENDING'],
    ],
  )
  assert.deepEqual((await jobnik.stage(publish.id)).summary, { ...summary, pending: 1, total: 1 })

  const first = await jobnik.dequeue('resize')
  assert.deepEqual([first!.id, first!.status, first!.stageId], [one!.id, 'IN_PROGRESS', resize.id])
  assert.ok(first!.startTime !== undefined && first!.endTime === undefined)
  const begun = await jobnik.job(id)
  assert.deepEqual(
    [begun.status, begun.stages!.map(stage => stage.status)],
    ['IN_PROGRESS', ['IN_PROGRESS', 'CREATED']],
  )
  const done = await jobnik.report(first!.id, 'COMPLETED')
  assert.deepEqual([done.status, done.body.status, done.body.id], [200, 'COMPLETED', first!.id])
  assert.ok(done.body.endTime !== undefined)
  const half = await jobnik.stage(resize.id)
  assert.deepEqual([half.percentage, half.summary], [50, { ...summary, pending: 1, completed: 1, total: 2 }])
  await jobnik.report((await jobnik.dequeue('resize'))!.id, 'COMPLETED')
  const next = await jobnik.job(id)
  assert.deepEqual([next.percentage, next.stages!.map(stage => stage.status)], [50, ['COMPLETED', 'PENDING']])
  await jobnik.report((await jobnik.dequeue('publish'))!.id, 'COMPLETED')
  const whole = await jobnik.job(id)
  assert.deepEqual([whole.status, whole.percentage], ['COMPLETED', 100])
  assert.equal(await jobnik.dequeue('publish'), null)
})

test('a trace is kept where it was given, and nobody inherits another’s', async t => {
  const { jobnik } = await jobnikServed(t)
  const job = await jobnik.createJob({ traceparent: trace, tracestate: 'rojo=00f067aa0ba902b7' })
  assert.deepEqual([job.traceparent, job.tracestate], [trace, 'rojo=00f067aa0ba902b7'])
  const plain = await jobnik.createStage(job.id, 'a')
  const traced = await jobnik.createStage(job.id, 'b', { traceparent: trace, tracestate: 'a=b' })
  assert.deepEqual([plain.traceparent, traced.traceparent], [zeros, trace])
  const tasks = await jobnik.createTasks(traced.id, [{ data: {} }, { data: {}, traceparent: trace }])
  assert.deepEqual(
    tasks.map(task => task.traceparent),
    [zeros, trace],
  )
})

test('stages of the same type may follow one another, in one job and in many', async t => {
  const { jobnik, engine } = await jobnikServed(t)
  const job = await jobnik.createJob()
  const made = await Promise.all(Array.from({ length: 5 }, () => jobnik.createStage(job.id, 'command')))
  assert.deepEqual(made.map(stage => stage.order).sort(), [1, 2, 3, 4, 5])
  const stages = (await jobnik.ask<JobnikStage[]>('GET', `/v1/jobs/${job.id}/stages`)).body
  assert.deepEqual(
    stages.map(({ order, type, status }) => [order, type, status]),
    [1, 2, 3, 4, 5].map(order => [order, 'command', order === 1 ? 'PENDING' : 'CREATED']),
  )
  assert.deepEqual(
    (await engine.job(job.id)).stages.map(({ name }) => name),
    ['command', 'command 2', 'command 3', 'command 4', 'command 5'],
  )
  for (const { id } of stages) await jobnik.createTasks(id, [{ data: {} }])
  for (const { id } of stages) {
    const task = await jobnik.dequeue('command')
    assert.equal(task!.stageId, id)
    await jobnik.report(task!.id, 'COMPLETED')
  }
  assert.equal((await jobnik.job(job.id)).status, 'COMPLETED')
})

test('user metadata is replaced, not merged, of jobs, stages and tasks', async t => {
  const { jobnik } = await jobnikServed(t)
  const old = { userMetadata: { a: 1, deep: { b: 2 } } }
  const job = await jobnik.createJob(old)
  const stage = await jobnik.createStage(job.id, 'resize', old)
  const [task] = await jobnik.createTasks(stage.id, [{ data: {}, ...old }])
  const now = { deep: { c: null }, list: [1] }
  for (const [kind, id, code] of [
    ['jobs', job.id, 'JOB_MODIFIED_SUCCESSFULLY'],
    ['stages', stage.id, 'STAGE_MODIFIED_SUCCESSFULLY'],
    ['tasks', task!.id, 'TASK_MODIFIED_SUCCESSFULLY'],
  ] as const) {
    const { status, body } = await jobnik.ask('PATCH', `/v1/${kind}/${id}/user-metadata`, now)
    assert.deepEqual([status, body], [200, { code }])
    const read = await jobnik.ask<JobnikJob>('GET', `/v1/${kind}/${id}`)
    assert.deepEqual(read.body.userMetadata, now)
  }
})

test('a priority is changed; the same once more is 204 and says why', async t => {
  const { jobnik } = await jobnikServed(t)
  const { id, priority } = await jobnik.createJob()
  assert.equal(priority, 'VERY_LOW', 'Jobnik’s document says MEDIUM, but its server ignores that default')
  for (const word of ['LOW', 'MEDIUM', 'HIGH', 'VERY_HIGH', 'VERY_LOW']) {
    const set = () => jobnik.ask('PATCH', `/v1/jobs/${id}/priority`, { priority: word })
    const { status, body } = await set()
    assert.deepEqual([status, body], [200, { code: 'JOB_MODIFIED_SUCCESSFULLY' }])
    assert.equal((await jobnik.job(id)).priority, word)
    const same = await set()
    assert.deepEqual(
      [same.status, same.headers.get('reason'), same.body],
      [204, 'PRIORITY_CANNOT_BE_UPDATED_TO_SAME_VALUE', undefined],
    )
  }
})

test('what was submitted otherwise is seen in the same shapes, and can be worked on', async t => {
  const { jobnik, engine } = await jobnikServed(t)
  const stages = [
    { name: 'a', task: 'a', payload: 'text' },
    { name: 'b', task: 'b', payload: null },
  ]
  const { id } = await engine.submit({ name: 'invoices', input: [1], priority: 700, stages })
  const job = await jobnik.job(id)
  assert.deepEqual([job.data, job.priority, job.status], [{ value: [1] }, 'HIGH', 'PENDING'])
  assert.deepEqual(
    job.stages!.map(({ type, data, status }) => [type, data, status]),
    [
      ['a', {}, 'PENDING'],
      ['b', {}, 'CREATED'],
    ],
  )
  const task = await jobnik.dequeue('a')
  assert.deepEqual([task!.data, task!.maxAttempts], [{ value: 'text' }, 3])
  assert.equal((await jobnik.report(task!.id, 'FAILED')).body.status, 'RETRIED')
  const sealed = await jobnik.ask('POST', `/v1/jobs/${id}/stage`, { type: 'c', data: {} })
  assert.equal(sealed.body.code, 'JOB_IN_FINITE_STATE')
  const { id: alone } = await engine.enqueue('mail', { to: 'Ada' })
  const mail = await jobnik.dequeue('mail')
  assert.deepEqual(
    [mail!.id, mail!.data, mail!.stageId],
    [alone, { to: 'Ada' }, '00000000-0000-0000-0000-000000000000'],
  )
  assert.equal((await jobnik.report(alone, 'COMPLETED')).body.status, 'COMPLETED')
})

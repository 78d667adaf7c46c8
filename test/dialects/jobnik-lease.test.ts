/** How long a silent worker keeps its task: Jobnik's SDK sends no heartbeats. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { rescue } from '../../src/babysitter/rescue.ts'
import type { Call } from '../../src/dialects/dialect.ts'
import { engineFor } from '../../src/dialects/dialect-engine.ts'
import { taskRoutes } from '../../src/dialects/jobnik/task-routes.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { mergedReports } from '../../src/engine/tasks/merge-reports.ts'
import type { Identity } from '../../src/server/authenticate.ts'
import type { ServerOptions } from '../../src/server/options.ts'
import { begin, jobnikServed, oneStage, someType } from './jobnik-in.ts'

async function leased(t: TestContext, options: ServerOptions = {}) {
  const { jobnik, engine, advance } = await jobnikServed(t, { server: options })
  /** Advances the clock and runs the babysitter's search for lost leases. */
  const pass = async (seconds: number) => {
    await advance(seconds)
    await rescue({ beginsBlind: false }).run(engine.context)
  }
  return { jobnik, engine, pass }
}

test('a task may take 24 hours: it is given to another worker only after that', async t => {
  const { jobnik, pass } = await leased(t)
  const { type } = await oneStage(jobnik)
  const lost = await begin(jobnik, type)
  await pass(86_390)
  assert.equal(await jobnik.dequeue(type), null)
  await pass(20)
  const again = await begin(jobnik, type)
  assert.deepEqual([again.id, again.attempts], [lost.id, 0])
  // A report does not name the attempt, so it counts for the current one.
  assert.equal((await jobnik.report(lost.id, 'COMPLETED')).status, 200)
})

test('the setting jobnikLeaseSeconds says after how long a silent worker loses its task', async t => {
  const { jobnik, pass } = await leased(t, { jobnikLeaseSeconds: 600 })
  const { type } = await oneStage(jobnik)
  const lost = await begin(jobnik, type)
  await pass(590)
  assert.equal(await jobnik.dequeue(type), null)
  await pass(20)
  assert.equal((await begin(jobnik, type)).id, lost.id)
})

test('a job that is created with leaseSeconds has that lease in all its stages, whatever the server’s is', async t => {
  const { jobnik, pass } = await leased(t, { jobnikLeaseSeconds: 600 })
  const { id } = await jobnik.createJob({ leaseSeconds: 7200 })
  const stages = [await jobnik.createStage(id, someType()), await jobnik.createStage(id, someType())]
  for (const stage of stages) await jobnik.createTasks(stage.id, [{ data: {} }])
  for (const { type } of stages) {
    const lost = await begin(jobnik, type)
    await pass(7190)
    assert.equal(await jobnik.dequeue(type), null)
    await pass(20)
    assert.equal((await begin(jobnik, type)).id, lost.id)
    await jobnik.report(lost.id, 'COMPLETED')
  }
  assert.equal((await jobnik.job(id)).status, 'COMPLETED')
})

test('a lease that is too short, too long or no number is 400 VALIDATION_ERROR', async t => {
  const { jobnik } = await leased(t)
  for (const leaseSeconds of [4, 7 * 86_400 + 1, '1h', null]) {
    const { status, body } = await jobnik.ask('POST', '/v1/jobs', { name: 'images', data: {}, leaseSeconds })
    assert.deepEqual([status, body.code], [400, 'VALIDATION_ERROR'], String(leaseSeconds))
  }
})

test('a stage that is added to a job of Pawl’s own has Jobnik’s lease, so that its workers need no heartbeats', async t => {
  const { jobnik, engine, pass } = await leased(t)
  const { id } = await engine.submit({ name: 'images', open: true })
  const { type, id: stageId } = await jobnik.createStage(id, someType())
  await jobnik.createTasks(stageId, [{ data: {} }])
  await begin(jobnik, type)
  await pass(86_390)
  assert.equal(await jobnik.dequeue(type), null)
})

const identity: Identity = { name: undefined, roles: ['worker'], queues: null, holder: '' }

/** A dequeue whose client disconnects before the task is found. */
function dequeueAndHangUp(engine: Engine, type: string, call: Call = {}) {
  const dequeue = taskRoutes.find(({ path }) => path.endsWith('/dequeue'))!
  return dequeue.handle({
    engine: engineFor({ engine, reports: mergedReports(engine.context) }, identity),
    params: { type },
    query: {},
    body: undefined,
    call,
    root: '',
    lastEventId: undefined,
    heartbeatSeconds: 10,
    settings: { jobnikLeaseSeconds: 86_400, falconeriLeaseSeconds: 86_400 },
    signal: AbortSignal.abort(),
  })
}

test('a worker that hangs up before it is answered and asks again under its idempotency key has the same task', async t => {
  const { jobnik, engine } = await leased(t)
  const { type, tasks } = await oneStage(jobnik, [{ data: {} }, { data: {} }])
  await dequeueAndHangUp(engine, type, { idempotencyKey: 'k' })
  const response = await fetch(`${jobnik.url}/v1/stages/${type}/tasks/dequeue`, {
    method: 'PATCH',
    headers: { 'idempotency-key': 'k' },
  })
  assert.equal(((await response.json()) as { id: string }).id, tasks[0]!.id)
})

test('a worker that hangs up before it is answered loses no task: another gets it at once', async t => {
  const { jobnik, engine } = await leased(t)
  const { type, tasks } = await oneStage(jobnik)
  assert.equal((await dequeueAndHangUp(engine, type)).status, 404)
  const task = await begin(jobnik, type)
  assert.deepEqual([task.id, task.attempts], [tasks[0]!.id, 0])
})

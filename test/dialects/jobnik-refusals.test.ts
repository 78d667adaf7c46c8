/** Requests that Jobnik refuses, with its codes and in its format. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { served } from '../harness/served.ts'
import type { JobnikJob } from './jobnik-client.ts'
import { jobIn, jobnikServed, oneStage, someType, stageIn, work } from './jobnik-in.ts'

test('what is missing, too much or something else is 400 VALIDATION_ERROR, and nothing is made of it', async t => {
  const { jobnik } = await jobnikServed(t)
  const { jobId, stage, tasks } = await oneStage(jobnik)
  const id = tasks[0]!.id
  const bad: [method: string, path: string, body?: unknown][] = [
    ['POST', '/v1/jobs', undefined],
    ['POST', '/v1/jobs', '{"name":'],
    ['POST', '/v1/jobs', []],
    ['POST', '/v1/jobs', { name: 'images' }],
    ['POST', '/v1/jobs', { data: {} }],
    ['POST', '/v1/jobs', { name: 'x', data: {} }],
    ['POST', '/v1/jobs', { name: 'x'.repeat(51), data: {} }],
    ['POST', '/v1/jobs', { name: 'images', data: [] }],
    ['POST', '/v1/jobs', { name: 'images', data: {}, priority: 'SUPER_HIGH' }],
    ['POST', '/v1/jobs', { name: 'images', data: {}, userMetadata: 1 }],
    ['POST', '/v1/jobs', { name: 'images', data: {}, traceparent: 'x' }],
    ['POST', '/v1/jobs', { name: 'images', data: {}, retries: 1 }],
    ['POST', '/v1/jobs', { name: 'images', data: { text: '\0' } }],
    ['POST', '/v1/jobs?dry=true', { name: 'images', data: {} }],
    ['GET', '/v1/jobs?jobName=x'],
    ['GET', '/v1/jobs?page=0'],
    ['GET', '/v1/jobs?page=1.5'],
    ['GET', '/v1/jobs?page_size=101'],
    ['GET', '/v1/jobs?page=1&page=2'],
    ['GET', '/v1/jobs?from_date=yesterday'],
    ['GET', '/v1/jobs?end_date=2025-13-01T00:00:00Z'],
    ['GET', '/v1/jobs?priority=high'],
    ['GET', '/v1/jobs?should_return_stages=yes'],
    ['GET', '/v1/jobs?job_name='],
    ['GET', '/v1/jobs/1'],
    ['GET', `/v1/jobs/${jobId}?should_return_tasks=true`],
    ['DELETE', '/v1/jobs/1'],
    ['DELETE', `/v1/jobs/${jobId}?force=true`],
    ['PUT', `/v1/jobs/${jobId}/status`, {}],
    ['PUT', '/v1/jobs/1/status', { status: 'ABORTED' }],
    ['PATCH', `/v1/jobs/${jobId}/priority`, { priority: 1 }],
    ['PATCH', `/v1/jobs/${jobId}/user-metadata`, [1]],
    ['PATCH', `/v1/jobs/${jobId}/user-metadata`, undefined],
    ['POST', `/v1/jobs/${jobId}/stage`, { type: 'a' }],
    ['POST', `/v1/jobs/${jobId}/stage`, { type: '', data: {} }],
    ['POST', `/v1/jobs/${jobId}/stage`, { type: 'x'.repeat(51), data: {} }],
    ['POST', `/v1/jobs/${jobId}/stage`, { type: 'a', data: {}, startAsWaiting: 'yes' }],
    ['POST', `/v1/jobs/${jobId}/stage`, { type: 'a', data: {}, order: 1 }],
    ['GET', '/v1/stages?stage_operation_status=DONE'],
    ['GET', '/v1/stages?job_id=1'],
    ['GET', '/v1/stages/1'],
    ['GET', `/v1/stages/${stage.id}/summary?x=1`],
    ['PUT', `/v1/stages/${stage.id}/status`, { status: 'WAITING' }],
    ['POST', `/v1/stages/${stage.id}/tasks`, { data: {} }],
    ['POST', `/v1/stages/${stage.id}/tasks`, [{}]],
    ['POST', `/v1/stages/${stage.id}/tasks`, [{ data: {} }, { data: {}, maxAttempts: 0 }]],
    ['POST', `/v1/stages/${stage.id}/tasks`, [{ data: {} }, { data: {}, maxAttempts: 1.5 }]],
    ['POST', `/v1/stages/${stage.id}/tasks`, [{ data: {} }, { data: {}, type: 'x' }]],
    ['POST', `/v1/stages/${stage.id}/tasks`, [{ data: {} }, null]],
    ['GET', `/v1/stages/${stage.id}/tasks?status=PENDING`],
    ['PATCH', `/v1/stages/${stage.type}/tasks/dequeue?limit=1`],
    ['GET', '/v1/tasks?status=DONE'],
    ['GET', '/v1/tasks/1'],
    ['PUT', `/v1/tasks/${id}/status`, { status: 'PENDING' }],
    ['PATCH', `/v1/tasks/${id}/user-metadata`, 'null'],
  ]
  const before = await jobnik.job(jobId)
  for (const [method, path, body] of bad) {
    const answer = await jobnik.ask(method, path, body)
    const what = `${method} ${path} ${JSON.stringify(body)}`
    assert.deepEqual([answer.status, answer.body.code], [400, 'VALIDATION_ERROR'], what)
    assert.ok(answer.body.message!.length > 0, what)
  }
  assert.deepEqual(await jobnik.job(jobId), before)
  assert.equal((await jobnik.ask<JobnikJob[]>('GET', '/v1/jobs')).body.length, 1)
})

test('what is not there is 404, with the code of what was looked for', async t => {
  const { jobnik } = await jobnikServed(t)
  const id = randomUUID()
  const asked: [method: string, path: string, code: string, body?: unknown][] = [
    ['GET', `/v1/jobs/${id}`, 'JOB_NOT_FOUND'],
    ['DELETE', `/v1/jobs/${id}`, 'JOB_NOT_FOUND'],
    ['PATCH', `/v1/jobs/${id}/user-metadata`, 'JOB_NOT_FOUND', {}],
    ['PATCH', `/v1/jobs/${id}/priority`, 'JOB_NOT_FOUND', { priority: 'LOW' }],
    ['PUT', `/v1/jobs/${id}/status`, 'JOB_NOT_FOUND', { status: 'PAUSED' }],
    ['GET', `/v1/jobs/${id}/stages`, 'JOB_NOT_FOUND'],
    ['POST', `/v1/jobs/${id}/stage`, 'JOB_NOT_FOUND', { type: 'a', data: {} }],
    ['GET', `/v1/stages/${id}`, 'STAGE_NOT_FOUND'],
    ['GET', `/v1/stages/${id}/summary`, 'STAGE_NOT_FOUND'],
    ['PATCH', `/v1/stages/${id}/user-metadata`, 'STAGE_NOT_FOUND', {}],
    ['PUT', `/v1/stages/${id}/status`, 'STAGE_NOT_FOUND', { status: 'PENDING' }],
    ['GET', `/v1/stages/${id}/tasks`, 'STAGE_NOT_FOUND'],
    ['POST', `/v1/stages/${id}/tasks`, 'STAGE_NOT_FOUND', [{ data: {} }]],
    ['GET', `/v1/tasks/${id}`, 'TASK_NOT_FOUND'],
    ['PATCH', `/v1/tasks/${id}/user-metadata`, 'TASK_NOT_FOUND', {}],
    ['PUT', `/v1/tasks/${id}/status`, 'TASK_NOT_FOUND', { status: 'FAILED' }],
    ['GET', '/v1/nothing', 'ROUTE_NOT_FOUND'],
  ]
  for (const [method, path, code, body] of asked) {
    const answer = await jobnik.ask(method, path, body)
    assert.deepEqual([answer.status, answer.body.code], [404, code], `${method} ${path}`)
    if (code !== 'ROUTE_NOT_FOUND') assert.equal(answer.body.message, code, 'its message is its code, as in Jobnik')
  }
})

test('fields beside a status or a priority are ignored', async t => {
  const { jobnik } = await jobnikServed(t)
  const { jobId, type, stage, tasks } = await oneStage(jobnik)
  const asked: [method: string, path: string, body: object][] = [
    ['PATCH', `/v1/jobs/${jobId}/priority`, { priority: 'HIGH', reason: 'urgent' }],
    ['PUT', `/v1/jobs/${jobId}/status`, { status: 'PAUSED', reason: 'maintenance' }],
    ['PUT', `/v1/jobs/${jobId}/status`, { status: 'PENDING', priority: 'of no matter' }],
    ['PUT', `/v1/stages/${stage.id}/status`, { status: 'PENDING', comment: 'checked' }],
  ]
  for (const [method, path, body] of asked) assert.equal((await jobnik.ask(method, path, body)).status, 200, path)
  await jobnik.dequeue(type)
  const done = await jobnik.ask('PUT', `/v1/tasks/${tasks[0]!.id}/status`, { status: 'COMPLETED', result: { n: 1 } })
  assert.equal(done.status, 200)
  const job = await jobnik.job(jobId)
  assert.deepEqual([job.status, job.priority], ['COMPLETED', 'HIGH'])
})

test('nothing is added to what has ended, nor tasks to a stage that has begun; each is 400 with its code', async t => {
  const { jobnik } = await jobnikServed(t)
  for (const status of ['COMPLETED', 'FAILED', 'ABORTED'] as const) {
    const { jobId, stage } = await jobIn(jobnik, status)
    const added = await jobnik.ask('POST', `/v1/jobs/${jobId}/stage`, { type: 'a', data: {} })
    const jobHasEnded = { message: 'JOB_ALREADY_FINISHED_STAGES_ERROR', code: 'JOB_IN_FINITE_STATE' }
    assert.deepEqual([added.status, added.body], [400, jobHasEnded], status)
    const tasks = await jobnik.ask('POST', `/v1/stages/${stage.id}/tasks`, [{ data: {} }])
    const stageHasEnded = { message: 'STAGE_ALREADY_FINISHED_TASKS_ERROR', code: 'STAGE_IN_FINITE_STATE' }
    assert.deepEqual([tasks.status, tasks.body], [400, stageHasEnded], status)
  }
  const begun = await stageIn(jobnik, 'IN_PROGRESS')
  const late = await jobnik.ask('POST', `/v1/stages/${begun.stage.id}/tasks`, [{ data: {} }])
  const hasBegun = { message: 'ADD_TASK_NOT_ALLOWED', code: 'NOT_ALLOWED_TO_ADD_TASKS_TO_IN_PROGRESS_STAGE' }
  assert.deepEqual([late.status, late.body], [400, hasBegun])
  for (const status of ['CREATED', 'WAITING', 'PENDING'] as const) {
    const { stage } = await stageIn(jobnik, status)
    assert.equal((await jobnik.createTasks(stage.id, [{ data: {} }, { data: {} }])).length, 2)
    assert.equal((await jobnik.stage(stage.id)).summary.total, 3)
  }
})

test('a stage of a job that has failed with work in hand takes nothing more, and the job can be deleted', async t => {
  const { jobnik } = await jobnikServed(t)
  const { jobId, type, stage } = await oneStage(jobnik, [{ data: {} }, { data: {} }])
  await jobnik.dequeue(type)
  await work(jobnik, type, 'FAILED')
  const tasks = await jobnik.ask('POST', `/v1/stages/${stage.id}/tasks`, [{ data: {} }])
  assert.equal(tasks.body.code, 'STAGE_IN_FINITE_STATE')
  const added = await jobnik.ask('POST', `/v1/jobs/${jobId}/stage`, { type: 'a', data: {} })
  assert.equal(added.body.code, 'JOB_IN_FINITE_STATE')
  assert.equal((await jobnik.ask('DELETE', `/v1/jobs/${jobId}`)).status, 200)
})

test('tasks may still be posted to the stages behind a failed one; no worker ever gets them', async t => {
  const { jobnik } = await jobnikServed(t)
  const { jobId, type } = await oneStage(jobnik)
  const created = await jobnik.createStage(jobId, someType())
  const waiting = await jobnik.createStage(jobId, someType(), { startAsWaiting: true })
  await work(jobnik, type, 'FAILED')
  for (const { id, type: behind, status } of [created, waiting]) {
    const tasks = await jobnik.createTasks(id, [{ data: { n: 1 } }, { data: { n: 2 } }])
    assert.deepEqual(
      tasks.map(({ data, stageId }) => [data, stageId]),
      [
        [{ n: 1 }, id],
        [{ n: 2 }, id],
      ],
    )
    const after = await jobnik.stage(id)
    assert.deepEqual([after.status, after.summary.total], [status, 2])
    assert.equal(await jobnik.dequeue(behind), null)
  }
  assert.equal((await jobnik.job(jobId)).status, 'FAILED')
  assert.equal((await jobnik.ask('DELETE', `/v1/jobs/${jobId}`)).status, 200)
})

test('with keys each route wants its permission, and a key for some queues knows only those types', async t => {
  const { server, engine } = await served(t, {
    server: { keysOnly: true },
    before: async engine => void (await engine.createKey({ name: 'root', role: 'admin' })),
  })
  const url = `${server.url}/dialects/jobnik`
  const as = async (role: 'producer' | 'worker', queues?: string[]) => {
    const { secret } = await engine.createKey({ name: role, role, ...(queues && { queues }) })
    return async (method: string, path: string, body?: unknown) => {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}` },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const answer = (await response.json()) as { id: string; code: string }
      return { status: response.status, ...answer }
    }
  }
  assert.equal((await fetch(`${url}/v1/jobs`)).status, 401)
  const [mine, other] = [someType(), someType()]
  const producer = await as('producer', [mine])
  const worker = await as('worker', [mine])
  const foreign = await as('worker', [other])
  const { id } = await producer('POST', '/v1/jobs', { name: 'images', data: {} })
  assert.equal((await producer('POST', `/v1/jobs/${id}/stage`, { type: other, data: {} })).status, 403)
  const stage = await producer('POST', `/v1/jobs/${id}/stage`, { type: mine, data: {} })
  assert.equal((await producer('POST', `/v1/stages/${stage.id}/tasks`, [{ data: {} }])).status, 201)
  assert.equal((await producer('PATCH', `/v1/stages/${mine}/tasks/dequeue`)).code, 'KEY_REFUSED')
  assert.equal((await foreign('PATCH', `/v1/stages/${mine}/tasks/dequeue`)).status, 403)
  const task = await worker('PATCH', `/v1/stages/${mine}/tasks/dequeue`)
  assert.equal(task.status, 'IN_PROGRESS')
  assert.equal((await foreign('PUT', `/v1/tasks/${task.id}/status`, { status: 'FAILED' })).status, 403)
  assert.equal((await worker('PUT', `/v1/jobs/${id}/status`, { status: 'ABORTED' })).status, 403)
  assert.equal((await worker('PUT', `/v1/tasks/${task.id}/status`, { status: 'COMPLETED' })).status, 'COMPLETED')
})

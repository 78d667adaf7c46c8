/** Jobnik's lists, filters and pages. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Jobnik, JobnikJob, JobnikStage, JobnikTask } from './jobnik-client.ts'
import { begin, jobnikServed, oneStage, someType, stageIn, stageStatuses, work } from './jobnik-in.ts'

interface Paged<Item> {
  readonly total: number
  readonly items: readonly Item[]
}

const idsOf = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id)
const get = async <Body>(jobnik: Jobnik, path: string) => {
  const { status, body } = await jobnik.ask<Body>('GET', path)
  assert.equal(status, 200, path)
  return body
}

test('jobs are found by name, time and priority, oldest first, with their stages if they are asked for', async t => {
  const { jobnik, advance } = await jobnikServed(t)
  const jobs: JobnikJob[] = []
  for (const [name, priority] of [
    ['red', 'LOW'],
    ['green', 'HIGH'],
    ['red', 'HIGH'],
  ] as const) {
    await advance(60 * (jobs.length + 1))
    jobs.push(await jobnik.createJob({ name, priority }))
  }
  const found = async (query: string) => {
    const list = await get<JobnikJob[]>(jobnik, `/v1/jobs${query}`)
    return list.map(({ id }) => jobs.findIndex(job => job.id === id))
  }
  assert.deepEqual(await found(''), [0, 1, 2])
  assert.deepEqual(await found('?job_name=red'), [0, 2])
  assert.deepEqual(await found('?priority=HIGH'), [1, 2])
  assert.deepEqual(await found('?priority=HIGH&job_name=red'), [2])
  assert.deepEqual(await found(`?from_date=${jobs[1]!.creationTime}`), [1, 2])
  assert.deepEqual(await found(`?end_date=${jobs[1]!.creationTime}`), [0, 1])
  assert.deepEqual(await found('?job_name=blue'), [])
  await jobnik.createStage(jobs[0]!.id, 'resize')
  const [whole] = await get<JobnikJob[]>(jobnik, '/v1/jobs?should_return_stages=true&priority=LOW')
  assert.deepEqual(
    whole!.stages!.map(({ type }) => type),
    ['resize'],
  )
  for (const no of ['', '?should_return_stages=false']) {
    assert.equal('stages' in (await get<JobnikJob>(jobnik, `/v1/jobs/${jobs[0]!.id}${no}`)), false)
  }
})

test('with a page or its size a list is {total, items}, ten at a time; without them it is whole', async t => {
  const { jobnik } = await jobnikServed(t)
  const ids: string[] = []
  for (let n = 0; n < 12; n++) ids.push((await jobnik.createJob()).id)
  const page = (query: string) => get<Paged<JobnikJob>>(jobnik, `/v1/jobs?${query}`)
  assert.deepEqual(idsOf(await get<JobnikJob[]>(jobnik, '/v1/jobs')), ids)
  const first = await page('page=1')
  assert.deepEqual([first.total, idsOf(first.items)], [12, ids.slice(0, 10)])
  const second = await page('page=2&page_size=5')
  assert.deepEqual([second.total, idsOf(second.items)], [12, ids.slice(5, 10)])
  assert.deepEqual(idsOf((await page('page_size=3')).items), ids.slice(0, 3))
  assert.deepEqual(await page('page=9&page_size=5'), { total: 12, items: [] })

  const { stage, jobId } = await oneStage(
    jobnik,
    Array.from({ length: 3 }, (_, n) => ({ data: { n } })),
  )
  await jobnik.createStage(jobId, someType())
  for (const [path, total] of [
    [`/v1/stages/${stage.id}/tasks`, 3],
    [`/v1/tasks?stage_id=${stage.id}`, 3],
    [`/v1/jobs/${jobId}/stages`, 2],
    [`/v1/stages?job_id=${jobId}`, 2],
  ] as const) {
    const all = await get<JobnikTask[]>(jobnik, path)
    assert.equal(all.length, total, path)
    const last = await get<Paged<JobnikTask>>(jobnik, `${path}${path.includes('?') ? '&' : '?'}page=2&page_size=1`)
    assert.deepEqual([last.total, idsOf(last.items)], [total, [all[1]!.id]], path)
  }
})

test('stages are found by job, type and status, with their tasks if they are asked for', async t => {
  const { jobnik } = await jobnikServed(t)
  const made = new Map<string, string>()
  for (const status of stageStatuses) made.set(status, (await stageIn(jobnik, status)).stage.id)
  const found = async (query: string) => idsOf(await get<JobnikStage[]>(jobnik, `/v1/stages?${query}`))
  for (const [status, id] of made) {
    const list = await get<JobnikStage[]>(jobnik, `/v1/stages?stage_operation_status=${status}`)
    assert.ok(idsOf(list).includes(id), status)
    assert.deepEqual(new Set(list.map(stage => stage.status)), new Set([status]))
    const { total, items } = await get<Paged<JobnikStage>>(
      jobnik,
      `/v1/stages?stage_operation_status=${status}&page=1&page_size=1`,
    )
    assert.deepEqual([total, idsOf(items)], [list.length, idsOf(list).slice(0, 1)])
  }
  const one = await jobnik.stage(made.get('COMPLETED')!)
  assert.deepEqual(await found(`stage_type=${one.type}`), [one.id])
  assert.equal((await found(`job_id=${one.jobId}`)).length, 2)
  const [full] = await get<JobnikStage[]>(jobnik, `/v1/stages?stage_type=${one.type}&should_return_tasks=true`)
  assert.deepEqual(
    full!.tasks!.map(({ status }) => status),
    ['COMPLETED'],
  )
  const single = await get<JobnikStage>(jobnik, `/v1/stages/${one.id}?should_return_tasks=true`)
  assert.deepEqual(single.tasks, full!.tasks)
  const ofJob = await get<JobnikStage[]>(jobnik, `/v1/jobs/${one.jobId}/stages?should_return_tasks=true`)
  assert.deepEqual(
    ofJob.map(({ order, tasks }) => [order, tasks!.length]),
    [
      [1, 1],
      [2, 1],
    ],
  )
})

test('tasks are found by stage, type, time and status, oldest first', async t => {
  const { jobnik } = await jobnikServed(t)
  const tasks = Array.from({ length: 4 }, () => ({ data: {}, maxAttempts: 2 }))
  const { stage, type, tasks: made } = await oneStage(jobnik, tasks)
  await oneStage(jobnik)
  const completed = await work(jobnik, type)
  const retried = await work(jobnik, type, 'FAILED')
  const begun = await begin(jobnik, type)
  const found = async (query: string) => idsOf(await get<JobnikTask[]>(jobnik, `/v1/tasks?${query}`))
  assert.deepEqual(await found(`stage_id=${stage.id}`), idsOf(made))
  assert.deepEqual(await found(`stage_type=${type}`), idsOf(made))
  assert.deepEqual(await found(`stage_id=${stage.id}&status=COMPLETED`), [completed.id])
  assert.deepEqual(await found(`stage_id=${stage.id}&status=RETRIED`), [retried.id])
  assert.deepEqual(await found(`stage_id=${stage.id}&status=IN_PROGRESS`), [begun.id])
  assert.equal((await found(`stage_id=${stage.id}&status=PENDING`)).length, 1)
  assert.deepEqual(await found(`stage_id=${stage.id}&status=FAILED`), [])
  assert.deepEqual(await found('status=CREATED'), [])
  assert.deepEqual(await found(`stage_id=${stage.id}&from_date=2100-01-01T00:00:00Z`), [])
  assert.equal((await found(`stage_id=${stage.id}&end_date=2100-01-01T00:00:00%2B02:00`)).length, 4)
  const { summary } = await jobnik.stage(stage.id)
  assert.deepEqual(summary, { pending: 1, inProgress: 1, completed: 1, failed: 0, created: 0, retried: 1, total: 4 })
  assert.deepEqual(await get(jobnik, `/v1/stages/${stage.id}/summary`), summary)
})

test('a list that would hold more than 10,000 is refused, and a page of it is not', async t => {
  const { jobnik, engine } = await jobnikServed(t)
  for (const tasks of [10_000, 1]) await engine.enqueueMany(Array.from({ length: tasks }, () => ({ type: 'many' })))
  const { status, body } = await jobnik.ask('GET', '/v1/tasks?stage_type=many')
  assert.deepEqual([status, body.code], [400, 'VALIDATION_ERROR'])
  const { total, items } = await get<Paged<JobnikTask>>(jobnik, '/v1/tasks?stage_type=many&page=101&page_size=100')
  assert.deepEqual([total, items.length], [10_001, 1])
})

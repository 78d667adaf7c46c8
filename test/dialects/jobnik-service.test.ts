/** Jobnik's routes for operators: probes, documentation and metrics for Prometheus. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { served } from '../harness/served.ts'
import { begin, jobnikServed, oneStage, work } from './jobnik-in.ts'

test('/liveness answers probes without a key, while the store answers', async t => {
  const { server } = await served(t, {
    server: { keysOnly: true },
    before: engine => engine.createKey({ name: 'root', role: 'admin' }),
  })
  const response = await fetch(`${server.url}/dialects/jobnik/liveness`)
  assert.deepEqual([response.status, await response.json()], [200, { status: 'ok' }])
})

test('/docs/api is a page about every route, and /docs/api.json the same for machines', async t => {
  const { server } = await served(t)
  const page = await fetch(`${server.url}/dialects/jobnik/docs/api/`)
  assert.deepEqual([page.status, page.headers.get('content-type')], [200, 'text/html; charset=utf-8'])
  const html = await page.text()
  const machines = await fetch(`${server.url}/dialects/jobnik/docs/api.json`)
  const document = (await machines.json()) as {
    openapi: string
    servers: { url: string }[]
    paths: Record<string, Record<string, { responses: object; requestBody?: object }>>
  }
  assert.match(document.openapi, /^3\./)
  assert.deepEqual(document.servers, [{ url: '/dialects/jobnik' }])
  for (const [path, method] of [
    ['/v1/jobs', 'post'],
    ['/v1/jobs/{id}/stage', 'post'],
    ['/v1/stages/{type}/tasks/dequeue', 'patch'],
    ['/v1/tasks/{id}/status', 'put'],
  ] as const) {
    const { responses, requestBody } = document.paths[path]![method]!
    assert.ok('default' in responses, path)
    assert.equal(requestBody !== undefined, method !== 'patch', path)
    assert.match(html, new RegExp(`${method.toUpperCase()} ${path.replace(/[{}]/g, '\\$&')}`))
  }
})

test('/service-metrics counts jobs, stages and tasks by status, type and priority, as Jobnik’s dashboards read them', async t => {
  const { jobnik, server } = await jobnikServed(t)
  const { type } = await oneStage(jobnik, [{ data: {} }, { data: {} }, { data: {} }], { priority: 'HIGH' })
  await work(jobnik, type)
  await begin(jobnik, type)
  const { jobId } = await oneStage(jobnik)
  await jobnik.setJob(jobId, 'ABORTED')
  const response = await fetch(`${server.url}/dialects/jobnik/service-metrics`)
  assert.deepEqual(
    [response.status, response.headers.get('content-type')],
    [200, 'text/plain; version=0.0.4; charset=utf-8'],
  )
  const lines = (await response.text()).split('\n')
  for (const line of [
    '# TYPE jobnik_jobs_by_status gauge',
    'jobnik_jobs_by_status{job_status="IN_PROGRESS"} 1',
    'jobnik_jobs_by_status{job_status="ABORTED"} 1',
    'jobnik_jobs_by_status{job_status="FAILED"} 0',
    `jobnik_stages_by_status{stage_status="IN_PROGRESS",stage_type="${type}"} 1`,
    `jobnik_stages_by_status{stage_status="WAITING",stage_type="${type}"} 0`,
    `jobnik_tasks_by_status{task_status="COMPLETED",stage_type="${type}"} 1`,
    `jobnik_tasks_by_status{task_status="IN_PROGRESS",stage_type="${type}"} 1`,
    `jobnik_tasks_by_status{task_status="PENDING",stage_type="${type}"} 1`,
    `jobnik_tasks_by_status{task_status="RETRIED",stage_type="${type}"} 0`,
    `jobnik_tasks_count{stage_type="${type}",priority="HIGH",task_status="PENDING"} 1`,
  ]) {
    assert.ok(lines.includes(line), `${line}\nis missing in\n${lines.join('\n')}`)
  }
})

test('/service-metrics counts a stage as it is shown: held, at its gate, or left behind by a failed one', async t => {
  const { jobnik, server, engine } = await jobnikServed(t)
  const { jobId, type } = await oneStage(jobnik)
  await jobnik.createStage(jobId, 'left')
  await jobnik.createStage(jobId, 'gated', { startAsWaiting: true })
  const { id: heldId } = await jobnik.createStage(jobId, 'held')
  await engine.hold(heldId)
  await work(jobnik, type, 'FAILED')
  const text = await (await fetch(`${server.url}/dialects/jobnik/service-metrics`)).text()
  for (const { type: stage, status } of (await jobnik.job(jobId)).stages!) {
    assert.ok(text.includes(`jobnik_stages_by_status{stage_status="${status}",stage_type="${stage}"} 1`), stage)
  }
})

test('a type of stage with quotes, backslashes or line breaks does not break /service-metrics', async t => {
  const { jobnik, server } = await jobnikServed(t)
  const { id } = await jobnik.createJob()
  await jobnik.createStage(id, 'a"b\\c\nd')
  const text = await (await fetch(`${server.url}/dialects/jobnik/service-metrics`)).text()
  assert.ok(text.includes('jobnik_stages_by_status{stage_status="PENDING",stage_type="a\\"b\\\\c\\nd"} 1'))
})

test('/service-metrics names 100 types of stages, and sums up the others and their priorities', async t => {
  const { server, engine } = await served(t)
  const stages = Array.from({ length: 120 }, (_, n) => ({ name: `s${n}`, task: `t${n}`, payloads: [1], needs: [] }))
  await engine.submit({ name: 'many', priority: 501, stages })
  await engine.submit({ name: 'same', priority: 502, stages: [{ name: 'mine', task: 'mine', payloads: [1, 2] }] })
  const text = await (await fetch(`${server.url}/dialects/jobnik/service-metrics`)).text()
  const figures = [...text.matchAll(/^jobnik_tasks_count\{stage_type="([^"]*)",priority="HIGH",.*\} (\d+)$/gm)]
  const counts = new Map(figures.map(([, type, count]) => [type, Number(count)]))
  assert.deepEqual([counts.size, counts.get('mine'), counts.get('_other')], [101, 2, 21])
  const types = new Set(
    [...text.matchAll(/^jobnik_stages_by_status\{.*stage_type="([^"]*)"/gm)].map(([, type]) => type),
  )
  assert.deepEqual([...types].sort(), [...counts.keys()].sort())
})

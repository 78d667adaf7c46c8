import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { problems } from '../../src/kernel/problem.ts'
import { namedOperations } from '../../src/protocol/operations.ts'
import { openApi } from '../../src/server/open-api.ts'
import { problemsOf } from '../../src/server/problem-responses.ts'
import { served } from '../harness/served.ts'

test('the OpenAPI document is one, and is what the server shows', async t => {
  const run = await served(t)
  const document = await (await run.request('/openapi.json')).json()
  assert.deepEqual(document, JSON.parse(JSON.stringify(openApi())))
  const validator = new Validator()
  const { valid, errors } = await validator.validate(document as Record<string, unknown>)
  assert.ok(valid, JSON.stringify(errors))
  assert.equal(validator.version, '3.1')
})

test('the OpenAPI document knows every route', () => {
  const paths = openApi().paths as Record<string, Record<string, { operationId: string }>>
  for (const [name, { path, method }] of namedOperations) {
    assert.equal(paths[path]![method.toLowerCase()]!.operationId, name)
  }
})

test('the OpenAPI document lists the problems of each operation per status', () => {
  const { paths, components } = openApi() as {
    paths: Record<string, Record<string, { responses: Record<string, ListedProblems & { $ref?: string }> }>>
    components: { responses: Record<string, ListedProblems> }
  }
  const listed = (path: string, method: string, status: number) => {
    const response = paths[path]![method]!.responses[status]!
    return (response.$ref ? components.responses[response.$ref.split('/').at(-1)!]! : response)['x-problem-codes']
  }
  assert.deepEqual(listed('/v1/jobs/{id}', 'get', 404), ['JOB_NOT_FOUND'])
  assert.deepEqual(listed('/v1/jobs/{id}', 'get', 401), ['KEY_MISSING'])
  assert.deepEqual(listed('/v1/tasks/{id}/heartbeat', 'post', 409), ['LEASE_LOST', 'TASK_BUSY', 'MOVE_REFUSED'])
  for (const [name, operation] of namedOperations) {
    const { path, method } = operation
    for (const code of problemsOf(operation)) {
      assert.ok(listed(path, method.toLowerCase(), problems[code].status).includes(code), `${name} ${code}`)
    }
  }
})

interface ListedProblems {
  readonly 'x-problem-codes': readonly string[]
}

test('health, readiness and metrics answer as the OpenAPI document says', async t => {
  const run = await served(t)
  const paths = openApi().paths as Record<string, { get: { responses: { 200: { content: object } } } }>
  for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs', '/docs/api', '/v1/me']) {
    const response = await run.request(path)
    assert.equal(response.status, 200)
    const [type] = response.headers.get('content-type')!.split(';')
    assert.ok(type! in paths[path]!.get.responses[200].content, `${path} answers ${type}`)
  }
})

test('the page for people names every route and every problem, and fetches and runs nothing', async t => {
  const run = await served(t)
  const response = await run.request('/docs/api')
  const page = await response.text()
  for (const [, { path }] of namedOperations) assert.ok(page.includes(path), path)
  for (const code of Object.keys(problems)) assert.ok(page.includes(`id="${code}"`), code)
  const policy = response.headers.get('content-security-policy')!
  assert.match(
    policy,
    /^default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
  )
  assert.doesNotMatch(page, /<script|<img|<link|<iframe|\son\w+=|style="|https?:/)
})

test('a problem says what it is, what to do, and where that is written', async t => {
  const run = await served(t)
  const response = await run.request('/v1/jobs/1')
  assert.match(response.headers.get('content-type')!, /^application\/problem\+json/)
  const problem = (await response.json()) as Record<string, unknown>
  assert.deepEqual([problem.status, problem.code, problem.type], [404, 'JOB_NOT_FOUND', '/docs/api#JOB_NOT_FOUND'])
  assert.equal(problem.title, problems.JOB_NOT_FOUND.means)
})

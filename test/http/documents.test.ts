import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { problems } from '../../src/kernel/problem.ts'
import { type Operation, type Route, routes } from '../../src/protocol/routes.ts'
import { openApi } from '../../src/server/open-api.ts'
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
  for (const [operation, { path, method }] of Object.entries(routes) as [Operation, Route][]) {
    assert.equal(paths[path]![method.toLowerCase()]!.operationId, operation)
  }
})

test('the page for people names every route and every problem, and fetches and runs nothing', async t => {
  const run = await served(t)
  const response = await run.request('/docs')
  const page = await response.text()
  for (const { path } of Object.values(routes)) assert.ok(page.includes(path), path)
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
  assert.deepEqual([problem.status, problem.code, problem.type], [404, 'JOB_NOT_FOUND', '/docs#JOB_NOT_FOUND'])
  assert.equal(problem.title, problems.JOB_NOT_FOUND.means)
})

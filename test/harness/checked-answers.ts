/** Checks every answer of a test's own server against the OpenAPI document. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { dialects } from '../../src/dialects/all.ts'
import { goodStatus } from '../../src/dialects/docs.ts'
import type { ProblemCode } from '../../src/kernel/problem.ts'
import { namedOperations, type OperationName, operations } from '../../src/protocol/operations.ts'
import { openApi } from '../../src/server/open-api.ts'
import { problemsOf } from '../../src/server/problem-responses.ts'

const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false })
ajv.addFormat('uuid', /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/)
ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
ajv.addSchema({ ...openApi(), $id: 'pawl' })

const patterns = namedOperations.map(([operation, { method, path, status }]) => ({
  operation,
  method,
  status,
  pattern: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}/?$`),
  pointer: `pawl#/paths/${path.replaceAll('/', '~1')}/${method.toLowerCase()}/responses/${status}`,
}))

const servers = new Set<string>()
const realFetch = globalThis.fetch

/** Checks every answer of this server that `fetch` receives, until the test ends: its port may be another server's next. */
export function checkAnswersOf(t: TestContext, server: string): void {
  servers.add(server)
  globalThis.fetch = checkedFetch
  t.after(() => void servers.delete(server))
}

async function checkedFetch(to: string | URL | Request, init?: RequestInit): Promise<Response> {
  const response = await realFetch(to, init)
  const { origin, pathname } = new URL(to instanceof Request ? to.url : to)
  if (servers.has(origin)) await check(init?.method ?? 'GET', pathname, response)
  return response
}

async function check(method: string, path: string, response: Response): Promise<void> {
  const kind = response.headers.get('content-type') ?? ''
  const route = patterns.find(one => one.method === method && one.pattern.test(path))
  if (kind.startsWith('application/problem+json')) {
    const problem = (await readJson(response)) as { readonly code?: ProblemCode } | undefined
    checkAnswer(`${method} ${path}`, problemSchema(), problem)
    if (route !== undefined && problem?.code !== undefined) checkCode(route.operation, problem.code)
    return
  }
  if (path.startsWith('/dialects/')) return checkDialect(method, path, response)
  if (route === undefined || kind.startsWith('text/event-stream')) return
  assert.equal(response.status, route.status, `${method} ${path} answers ${response.status}`)
  if (route.status === 204) return
  const schema = ajv.getSchema(`${route.pointer}/content/application~1json/schema`)
  checkAnswer(`${method} ${path}`, schema!, await readJson(response))
}

function checkCode(operation: OperationName, code: ProblemCode): void {
  const isListed = problemsOf(operations[operation]).includes(code)
  assert.ok(isListed, `${operation} answers ${code}: list it in its entry in src/protocol/`)
}

const spoken = Object.values(dialects).flatMap(({ name, routes, faults }) =>
  routes.map(route => ({
    method: route.method,
    pattern: new RegExp(`^/dialects/${name}${route.path.replace(/\{\w+\}/g, '[^/]+')}/?$`),
    answers: route.answers,
    status: goodStatus(route),
    faults,
  })),
)

/** The same for a dialect: what it answers, and how it refuses. A route that names what another leaves open goes first. */
async function checkDialect(method: string, path: string, response: Response): Promise<void> {
  const route = spoken.find(one => one.method === method && one.pattern.test(path))
  if (route === undefined || response.headers.get('content-type')?.startsWith('text/event-stream')) return
  const isExpected = !response.ok || response.status === 204 || response.status === route.status
  assert.ok(isExpected, `${method} ${path} answers ${response.status}, and its document says ${route.status}`)
  const schema = response.ok ? route.answers : route.faults
  const text = await response
    .clone()
    .text()
    .catch(() => undefined)
  const isEmpty = schema === null || response.status === 204
  if (isEmpty) return assert.equal(text ?? '', '', `${method} ${path} answers with a body`)
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  // Compiled when it is first needed: most tests speak no dialect.
  if (text !== undefined) checkAnswer(`${method} ${path}`, ajv.compile(schema), isJson ? JSON.parse(text) : text)
}

function problemSchema(): ValidateFunction {
  return ajv.getSchema('pawl#/components/schemas/Problem')!
}

/** The caller handles broken connections. */
async function readJson(response: Response): Promise<unknown> {
  try {
    return await response.clone().json()
  } catch {
    return undefined
  }
}

function checkAnswer(what: string, schema: ValidateFunction, answer: unknown): void {
  if (answer === undefined || schema(answer)) return
  assert.fail(`${what} is not what its schema says: ${ajv.errorsText(schema.errors)}\n${JSON.stringify(answer)}`)
}

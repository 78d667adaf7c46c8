/** The OpenAPI document, read off the tables: the routes, the fields of requests, the views, the problems. */

import { permissions, type Role, roles } from '../kernel/role.ts'
import { answers } from '../protocol/answers.ts'
import { problemsOf } from '../protocol/operation-problems.ts'
import { type Request, requests } from '../protocol/requests.ts'
import { hasBody, type Operation, type Route, routes, takesKey } from '../protocol/routes.ts'
import { views } from '../protocol/views.ts'
import { nested, type Schema } from '../schema/check.ts'
import { name } from '../schema/fields.ts'
import { besideName } from '../spec/named-job.ts'
import { jobSpecSchema } from '../spec/schema.ts'
import { problemResponses, problemSchema, sharedResponses } from './problem-responses.ts'
import { servicePaths } from './service-paths.ts'

const about =
  'A durable job engine. Each dialect that the server speaks has a document of its own: `/dialects/<name>/openapi.json`.'

/** The rules between fields of a job spec are left out: client generators turn their `allOf` into `any`. */
export function openApi(): Schema {
  const { $schema: _, $defs, title: _title, allOf: _jobRules, ...job } = jobSpecSchema()
  const { stage: stageSpec, inputs } = $defs as Record<string, Schema>
  const { allOf: _stageRules, ...stage } = stageSpec!
  const paths: Record<string, Record<string, Schema>> = {}
  for (const [operation, route] of Object.entries(routes) as [Operation, Route][]) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(operation, route) }
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Pawl', version: '1', description: about, license: { name: 'Apache-2.0' } },
    servers: [{ url: '/' }],
    security: [{ key: [] }, {}],
    tags: [{ name: 'service', description: 'Health, metrics and documentation.' }],
    paths: { ...paths, ...servicePaths },
    components: {
      schemas: {
        ...views,
        JobSpec: refersInside(job),
        NamedJob: nested({ pipeline: name, ...besideName }, ['pipeline']),
        StageSpec: refersInside(stage),
        AddedStage: refersInside(addedStage(stage)),
        InputSpec: refersInside(inputs!),
        Problem: problemSchema,
      },
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: roleTable() } },
      responses: sharedResponses,
    },
  }
}

function operationOf(operation: Operation, route: Route): Schema {
  const request = requests[operation]
  const answer = answers[operation]
  return {
    operationId: operation,
    summary: route.says,
    description: `Needs the permission \`${route.needs}\`: to ${permissions[route.needs]}.`,
    tags: [route.path.split('/')[2]!],
    parameters: parametersOf(operation, route, request),
    ...(hasBody(route) && { requestBody: bodyOf(route, request) }),
    responses: {
      [route.status]:
        answer === undefined
          ? { description: 'Done.' }
          : { description: route.says, content: contentOf(operation, answer) },
      ...problemResponses(problemsOf(operation)),
    },
  }
}

function contentOf(operation: Operation, schema: Schema): Schema {
  const json = { 'application/json': { schema } }
  return operation === 'events' ? { ...json, 'text/event-stream': { schema: { type: 'string' } } } : json
}

function parametersOf(operation: Operation, route: Route, request: Request): Schema[] {
  const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const inQuery = Object.entries(request.query ?? {}).map(([name, schema]) => ({
    name,
    in: 'query',
    schema,
    ...(isList(schema) && { style: 'form', explode: false }),
  }))
  return [...inPath, ...inQuery, ...(takesKey(operation) ? headersOf(route) : [])]
}

const idempotencyKey: Schema = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'Sent again within 24 hours it has its first answer and no second effect. One that was refused is free.',
  schema: { type: 'string', minLength: 1, maxLength: 200 },
}

const claimKey: Schema = {
  ...idempotencyKey,
  description:
    'Sent again within 24 hours it has the same tasks, as far as they are still held, and claims no more. One that won nothing is free.',
}

const traceparent: Schema = {
  name: 'traceparent',
  in: 'header',
  description: 'W3C trace context, kept with the job or the tasks that bring none of their own.',
  schema: { type: 'string' },
}

/** A claim makes nothing that could keep a trace. */
const headersOf = ({ needs }: Route) => (needs === 'work' ? [claimKey] : [idempotencyKey, traceparent])

const isList = (schema: Schema) => [schema, ...((schema.anyOf as Schema[]) ?? [])].some(({ type }) => type === 'array')

function bodyOf(route: Route, { body = {}, list, single, spec, required = [] }: Request): Schema {
  const named = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
  const fields = Object.fromEntries(Object.entries(body).filter(([name]) => !named.includes(name)))
  const many = list && { type: 'array', items: list, maxItems: 10_000 }
  const schema =
    spec === 'job'
      ? { anyOf: [{ $ref: '#/components/schemas/JobSpec' }, { $ref: '#/components/schemas/NamedJob' }] }
      : spec === 'stages'
        ? { type: 'array', items: { $ref: '#/components/schemas/AddedStage' } }
        : list === undefined
          ? nested(fields, required)
          : single
            ? { anyOf: [list, many] }
            : many
  const content = { 'application/json': { schema } }
  return {
    required: list !== undefined || spec !== undefined || required.length > 0,
    content: spec === 'job' ? { ...content, 'application/yaml': { schema: { type: 'string' } } } : content,
  }
}

/** One that is added to a job may leave its name to us. */
function addedStage({ required: _, ...stage }: Schema): Schema {
  return stage
}

/** The schema of a spec stands alone with its own definitions; here they are components. */
function refersInside(schema: Schema): Schema {
  const text = JSON.stringify(schema)
    .replaceAll('#/$defs/stage', '#/components/schemas/StageSpec')
    .replaceAll('#/$defs/inputs', '#/components/schemas/InputSpec')
  return JSON.parse(text)
}

function roleTable(): string {
  return (Object.keys(roles) as Role[]).map(role => `- ${role}: ${roles[role].join(', ')}`).join('\n')
}

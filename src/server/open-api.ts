/** The OpenAPI document, read off the registry of operations, the views and the problems. */
import { permissions, type Role, roles } from '../kernel/role.ts'
import { bodyFields, hasBody, type OperationEntry, takesKey, views } from '../protocol/operation.ts'
import { namedOperations } from '../protocol/operations.ts'
import { flag, ref, text } from '../protocol/shapes.ts'
import { nested, type Schema } from '../schema/check.ts'
import { name } from '../schema/fields.ts'
import { jobSpecSchema } from '../spec/job-spec.ts'
import { besideName } from '../spec/parse-job-spec.ts'
import { commonProblems, problemResponses, problemSchema, problemsOf, sharedResponses } from './problem-responses.ts'

const about =
  'A durable job engine. Each dialect that the server speaks has a document of its own: `/dialects/<name>/openapi.json`.'

/** The rules between fields of a job spec are left out: client generators turn their `allOf` into `any`. */
export function openApi(): Schema {
  const { $schema: _, $defs, title: _title, allOf: _jobRules, ...job } = jobSpecSchema()
  const { stage: stageSpec, inputs } = $defs as Record<string, Schema>
  const { allOf: _stageRules, ...stage } = stageSpec!
  const paths: Record<string, Record<string, Schema>> = {}
  for (const [name, operation] of namedOperations) {
    const { path, method } = operation
    paths[path] = { ...paths[path], [method.toLowerCase()]: operationOf(name, operation) }
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

function operationOf(name: string, operation: OperationEntry): Schema {
  const { summary, permission, path, status, answer, streams } = operation
  const stream = streams && { 'text/event-stream': { schema: { type: 'string' } } }
  const content = { 'application/json': { schema: answer }, ...stream }
  return {
    operationId: name,
    summary,
    description: `Needs the permission \`${permission}\`: to ${permissions[permission]}.`,
    tags: [path.split('/')[2]!],
    parameters: parametersOf(operation),
    ...(hasBody(operation) && { requestBody: bodyOf(operation) }),
    responses: {
      [status]: answer === undefined ? { description: 'Done.' } : { description: summary, content },
      ...problemResponses(problemsOf(operation)),
    },
  }
}

function parametersOf(operation: OperationEntry): Schema[] {
  const inPath = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const inQuery = Object.entries(operation.query ?? {}).map(([name, schema]) => ({
    name,
    in: 'query',
    schema,
    ...(isList(schema) && { style: 'form', explode: false }),
  }))
  return [...inPath, ...inQuery, ...(takesKey(operation) ? headersOf(operation) : [])]
}

const idempotencyKey: Schema = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'A request that is repeated with the same key within 24 hours gets the first answer and has no second effect. A refused request leaves its key free.',
  schema: { type: 'string', minLength: 1, maxLength: 200 },
}

const claimKey: Schema = {
  ...idempotencyKey,
  description:
    'A claim repeated with the same key within 24 hours returns its tasks that are still held, and no others. A claim that got none leaves its key free.',
}

const traceparent: Schema = {
  name: 'traceparent',
  in: 'header',
  description: 'W3C trace context. It is stored with the job, or with tasks that have no trace context of their own.',
  schema: { type: 'string' },
}

/** A claim creates nothing that could store a trace. */
const headersOf = ({ permission }: OperationEntry) =>
  permission === 'work' ? [claimKey] : [idempotencyKey, traceparent]

const isList = (schema: Schema) => [schema, ...((schema.anyOf as Schema[]) ?? [])].some(({ type }) => type === 'array')

function bodyOf(operation: OperationEntry): Schema {
  const { list, acceptsSingle, spec, required = [] } = operation
  const many = list && { type: 'array', items: list, maxItems: 10_000 }
  const schema =
    spec === 'job'
      ? { anyOf: [{ $ref: '#/components/schemas/JobSpec' }, { $ref: '#/components/schemas/NamedJob' }] }
      : spec === 'stages'
        ? { type: 'array', items: { $ref: '#/components/schemas/AddedStage' } }
        : list === undefined
          ? nested(bodyFields(operation), required)
          : acceptsSingle
            ? { anyOf: [list, many] }
            : many
  const content = { 'application/json': { schema } }
  return {
    required: list !== undefined || spec !== undefined || required.length > 0,
    content: spec === 'job' ? { ...content, 'application/yaml': { schema: { type: 'string' } } } : content,
  }
}

/** The name of an added stage is optional. */
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

const alive: Schema = { type: 'object', required: ['ok'], properties: { ok: flag } }

const json = (schema: Schema) => ({ 'application/json': { schema } })

/** A route that needs no key. */
const open = (operationId: string, summary: string, content: Schema): Schema => ({
  operationId,
  summary,
  tags: ['service'],
  security: [],
  parameters: [],
  responses: { 200: { description: summary, content }, ...problemResponses(['REQUEST_INVALID', 'SERVER_CLOSING']) },
})

const ready = open('ready', 'Check that the store accepts writes. For readiness probes.', json(alive))

/** Routes that are not operations of the engine. */
export const servicePaths: Readonly<Record<string, { readonly get: Schema }>> = {
  '/v1/me': {
    get: {
      operationId: 'me',
      summary: 'Show the caller and the permissions of its key.',
      tags: ['me'],
      parameters: [],
      responses: { 200: { description: 'The caller.', content: json(ref('Me')) }, ...problemResponses(commonProblems) },
    },
  },
  '/healthz': { get: open('health', 'Check that the process runs. For liveness probes.', json(alive)) },
  '/readyz': {
    get: { ...ready, responses: { ...(ready.responses as Schema), ...problemResponses(commonProblems) } },
  },
  '/metrics': {
    get: {
      operationId: 'metrics',
      summary: 'Get the metrics in the text format of Prometheus.',
      description: 'Needs the permission `read`.',
      tags: ['service'],
      parameters: [],
      responses: {
        200: { description: 'All metrics.', content: { 'text/plain': { schema: text } } },
        ...problemResponses(commonProblems),
      },
    },
  },
  '/openapi.json': { get: open('openApi', 'Get this document.', json({ type: 'object' })) },
  '/docs': { get: open('docs', 'Show the documentation as HTML pages.', { 'text/html': { schema: text } }) },
  '/docs/api': {
    get: open('apiPage', 'Show the routes and problems as an HTML page.', { 'text/html': { schema: text } }),
  },
}

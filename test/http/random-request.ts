/** Requests to our routes and to those of the dialects: some are valid, most are invalid in one place or completely. */
import { randomUUID } from 'node:crypto'
import { dialects } from '../../src/dialects/all.ts'
import { type DialectName, dialectNames } from '../../src/protocol/dialects.ts'
import type { Schema } from '../../src/schema/check.ts'
import { openApi } from '../../src/server/open-api.ts'
import type { Dice } from '../harness/dice.ts'

export interface RandomRequest {
  /** Undefined: one of our own routes. */
  readonly dialect?: DialectName
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: string | Uint8Array<ArrayBuffer> | undefined
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly schema: Schema
}

interface Operation {
  /** Undefined: one of our own routes. */
  readonly dialect?: DialectName
  readonly method: string
  readonly path: string
  readonly parameters: readonly Parameter[]
  readonly body: Schema | undefined
}

const document = openApi()
const own: readonly Operation[] = Object.entries(document.paths as Record<string, Record<string, Schema>>).flatMap(
  ([path, methods]) =>
    Object.entries(methods).map(([method, { parameters = [], requestBody }]) => ({
      method: method.toUpperCase(),
      path,
      parameters: parameters as Parameter[],
      body: (requestBody as { content?: Record<string, { schema: Schema }> } | undefined)?.content?.['application/json']
        ?.schema,
    })),
)

const ofDialects: readonly Operation[] = dialectNames.flatMap(name =>
  dialects[name].routes.map(({ method, path, takes }) => ({
    dialect: name,
    method,
    path: `/dialects/${name}${path}`,
    parameters: ['limit', 'offset', 'state', 'status', 'name', 'job_id', 'cursor'].map(query => ({
      name: query,
      in: 'query',
      schema: {},
    })),
    body: takes,
  })),
)
const operations = [...own, ...ofDialects]

const odd: readonly unknown[] = [
  null, true, 0, -1, 1.5, 1e308, -1e308, 2 ** 31, 2 ** 53, 1e-320, '', ' ', 'x', '\0', '\ud800', '𝕏', 'a'.repeat(201), '[]',
  '%', "'; drop table pawl.task; --", '../../etc/passwd', '1e5', 'NaN', '2024-13-45', '9999-12-31T23:59:59Z',
  [], [null], [[]], {}, { a: 1 }, { __proto__: null }, JSON.parse('{"__proto__":{"x":1}}'), { id: 1 }, { toString: 1 },
  randomUUID(), 'job', 'constructor', '__proto__',
] // biome-ignore format: a list to be read, not a column
const oddBodies: readonly (string | Uint8Array<ArrayBuffer>)[] = [
  '', ' ', 'null', '0', '"x"', '[]', '{}', '[null]', '[[]]', '{', '{"a":', '\ufeff{}', '{"a":1}{"b":2}', '[1,]', "{'a':1}",
  '['.repeat(5000), '['.repeat(5000) + ']'.repeat(5000), `{"a":${'{"a":'.repeat(3000)}1${'}'.repeat(3000)}}`,
  '1'.repeat(5000), `[${'1,'.repeat(5000)}1]`, '"\\u0000"', '"\\ud800"', `"${'x'.repeat(150_000)}"`,
  new Uint8Array([0xff, 0xfe, 0x7b, 0x7d]), new Uint8Array([0x22, 0xc0, 0x80, 0x22]), new Uint8Array([0x1f, 0x8b, 8, 0, 0]),
] // biome-ignore format: a list to be read, not a column

const deepest = 20

/** `ids`: from earlier answers, so that some requests name existing entities. */
export function randomRequest(dice: Dice, ids: readonly string[]): RandomRequest {
  const chance = (share: number) => dice.throw() < share
  const one = <T>(items: readonly T[]) => dice.among(items) as T
  const { dialect, method, path, parameters, body } = one(operations)
  // Otherwise every large body would be invalid somewhere.
  const sloppiness = one([0, 0.01, 0.15])
  let depth = 0
  const value = (schema: Schema): unknown => {
    // A schema may refer to itself.
    if (chance(sloppiness) || depth > deepest) return one(odd)
    depth += 1
    const made = fromSchema(schema)
    depth -= 1
    return made
  }

  /** Without waitSeconds, because response times are measured. */
  const namedValue = (name: string, schema: Schema) => (name === 'waitSeconds' ? 0 : value(schema))

  function fromSchema(schemaOrRef: Schema): unknown {
    const schema = resolve(schemaOrRef)
    if (schema.const !== undefined) return schema.const
    if (schema.enum !== undefined) return one(schema.enum as unknown[])
    const choice = (schema.anyOf ?? schema.oneOf) as Schema[] | undefined
    if (choice !== undefined) return value(one(choice))
    const type = one([schema.type ?? 'anything'].flat() as string[])
    if (type === 'object') return objectOf(schema)
    if (type === 'array')
      return Array.from({ length: Math.floor(dice.throw() ** 3 * 8) }, () => value((schema.items ?? {}) as Schema))
    if (type === 'integer' || type === 'number') return numberOf(schema)
    if (type === 'boolean') return chance(0.5)
    if (type === 'null') return null
    if (type === 'string') return textOf(schema)
    return one(odd)
  }

  function objectOf({ properties = {}, required = [] }: Schema): unknown {
    const named = Object.entries(properties as Record<string, Schema>)
    const kept = named.filter(([name]) =>
      (required as string[]).includes(name) ? !chance(sloppiness / 3) : chance(0.35),
    )
    const made = Object.fromEntries(kept.map(([name, inner]) => [name, namedValue(name, inner)]))
    return chance(sloppiness / 4) ? { ...made, [wellFormed(one(odd))]: one(odd) } : made
  }

  function numberOf({ minimum = -10, maximum = 10 }: Schema): number {
    const [low, high] = [minimum as number, maximum as number]
    if (chance(sloppiness)) return one([low - 1, high + 1])
    return one([low, high, Math.floor(low + dice.throw() * Math.min(10, high - low))])
  }

  function textOf({ format, maxLength = 20 }: Schema): string {
    if (format === 'uuid') return ids.length > 0 && chance(0.8) ? one(ids) : randomUUID()
    if (chance(sloppiness)) return 'y'.repeat(Math.min(maxLength as number, 5000) + 1)
    return one(['a', 'b', 'c', 'work', 'greet', 'stages.a.output', 'input.x == 1', '2030-01-01T00:00:00Z'])
  }

  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    if (name !== 'id' || path.includes('task-types'))
      return encodeURIComponent(chance(0.9) ? 'a' : wellFormed(one(odd)))
    if (chance(0.85) && ids.length > 0) return one(ids)
    return chance(0.1)
      ? one(['%', '%ff', '%00', '..', '%2e%2e', 'x'.repeat(301)])
      : encodeURIComponent(wellFormed(one(odd)))
  })
  const query = parameters
    .filter(parameter => parameter.in === 'query' && chance(0.3))
    .map(({ name, schema }) => `${name}=${encodeURIComponent(wellFormed(namedValue(name, schema)))}`)
  if (chance(0.03)) query.push(one(['limit=1&limit=2', '__proto__=1', '%=%', 'a[b]=c', '=', 'cursor=e30']))
  const hasBody = body !== undefined || chance(0.02)
  const sent = !hasBody ? undefined : chance(0.1) || body === undefined ? one(oddBodies) : JSON.stringify(value(body))
  const sends = chance(0.03) ? one(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) : method
  return {
    ...(dialect !== undefined && { dialect }),
    method: sends,
    path: filled + (query.length > 0 ? `?${query.join('&')}` : ''),
    headers: {
      ...(hasBody && { 'content-type': chance(0.95) ? 'application/json' : one(oddTypes) }),
      ...(chance(0.2) && { 'idempotency-key': one(['k1', 'k2', 'k3', 'x'.repeat(201), randomUUID()]) }),
      ...(chance(0.05) && { 'pawl-actor': one(['ada', 'é', 'x'.repeat(250)]) }),
      ...(chance(0.05) && { traceparent: one(['00-x', `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`]) }),
      ...(chance(0.02) && { 'content-encoding': 'gzip' }),
      ...(chance(0.02) && { authorization: one(['Bearer', 'Bearer x', 'Basic eDp5', 'Bearer \u00e9']) }),
      ...(chance(0.05) && { 'last-event-id': 'x' }),
    },
    body: sends === 'GET' ? undefined : sent,
  }
}

const oddTypes = ['text/plain', 'application/yaml', 'application/json; charset=utf-16', 'multipart/form-data', '/', 'x']

function wellFormed(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return text.toWellFormed()
}

function resolve(schema: Schema): Schema {
  const { $ref } = schema
  if (typeof $ref !== 'string') return schema
  const found = $ref
    .split('/')
    .slice(1)
    .reduce((inner, name) => inner[name] as Schema, document)
  return resolve(found)
}

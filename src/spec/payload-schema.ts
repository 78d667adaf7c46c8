/** What a worker says that payloads of a type look like, as JSON Schema; for whoever writes one without that worker. */
import { type Schema, Validator } from '@cfworker/json-schema'

export type PayloadSchema = Readonly<Record<string, unknown>>

/** Why a payload does not fit; none: it does. Only what is wrong itself is told, not again of all that holds it. */
export function faultsIn(schema: PayloadSchema, payload: unknown): string[] {
  const { errors } = new Validator(schema as Schema, '2020-12', false).validate(payload)
  return errors
    .filter(({ instanceLocation: at, keyword }) => !(isHolder(keyword) && errors.some(other => isWithin(other, at))))
    .map(({ instanceLocation, error }) => {
      const at = instanceLocation.replace(/^#\/?/, '').replaceAll('/', '.')
      return at === '' ? error : `${at}: ${error}`
    })
}

const isHolder = (keyword: string) => keyword === 'properties' || keyword === 'items' || keyword === 'prefixItems'
const isWithin = ({ instanceLocation }: { instanceLocation: string }, at: string) =>
  instanceLocation.startsWith(`${at}/`)

/** Why nothing can be held against this; undefined: it can be used. All of it is looked at, also what a payload may not reach. */
export function faultOf(schema: PayloadSchema): string | undefined {
  try {
    faultsIn(schema, null)
    for (const part of partsOf(schema)) checkPart(schema, part)
    return undefined
  } catch (error) {
    return `be a JSON Schema: ${(error as Error).message}`
  }
}

function* partsOf(value: unknown): Generator<PayloadSchema> {
  if (Array.isArray(value)) for (const item of value) yield* partsOf(item)
  else if (typeof value === 'object' && value !== null) {
    yield value as PayloadSchema
    for (const part of Object.values(value)) yield* partsOf(part)
  }
}

function checkPart(schema: PayloadSchema, { pattern, patternProperties, $ref }: PayloadSchema): void {
  if (typeof pattern === 'string') new RegExp(pattern, 'u')
  if (typeof patternProperties === 'object')
    for (const key of Object.keys(patternProperties ?? {})) new RegExp(key, 'u')
  if (typeof $ref === 'string' && !leadsSomewhere(schema, $ref)) throw new Error(`$ref "${$ref}" leads nowhere in it`)
}

function leadsSomewhere(schema: PayloadSchema, ref: string): boolean {
  if (!/^#(\/|$)/.test(ref)) return false
  const keys = ref.slice(2).split('/').filter(Boolean)
  const names = keys.map(key => decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~'))
  return names.reduce<unknown>((at, name) => (at as PayloadSchema | undefined)?.[name], schema) !== undefined
}

/** The parts of a JSON Schema (2020-12, and draft 7 where it differs), and the places of nested schemas. */

export type Schema = boolean | SchemaObject
export type SchemaObject = Readonly<Record<string, unknown>>

/** Keywords whose schemas apply to the same value as the enclosing schema. */
const inPlace = new Set(['allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentSchemas', 'dependencies'])

const single = ['not', 'if', 'then', 'else', 'items', 'additionalItems', 'unevaluatedItems', 'contains']
const singleOfObjects = ['additionalProperties', 'unevaluatedProperties', 'propertyNames']
const lists = ['allOf', 'anyOf', 'oneOf', 'prefixItems', 'items']
const maps = ['properties', 'patternProperties', 'dependentSchemas', 'dependencies', '$defs', 'definitions']
const forms = {
  single: new Set([...single, ...singleOfObjects]),
  list: new Set(lists),
  map: new Set(maps),
}

export interface Part {
  readonly schema: Schema
  readonly isInPlace: boolean
  /** Its place in the enclosing schema, as in `properties.name`. */
  readonly at: string
}

/** The schemas directly nested in a schema. */
export function* partsOf(schema: SchemaObject): Generator<Part> {
  for (const [keyword, value] of Object.entries(schema)) {
    const isInPlace = inPlace.has(keyword)
    const at = (name: string | number) => `${keyword}.${name}`
    if (forms.list.has(keyword) && Array.isArray(value)) {
      for (const [index, inner] of value.entries())
        if (isSchema(inner)) yield { schema: inner, isInPlace, at: at(index) }
    } else if (forms.map.has(keyword) && isObject(value)) {
      for (const [name, inner] of Object.entries(value))
        if (isSchema(inner)) yield { schema: inner, isInPlace, at: at(name) }
    } else if (forms.single.has(keyword) && isSchema(value)) yield { schema: value, isInPlace, at: keyword }
  }
}

/** Why the value of a keyword with nested schemas is invalid. */
export function formFault(keyword: string, value: unknown): string | undefined {
  const isList = forms.list.has(keyword) && Array.isArray(value)
  if (isList) return value.every(isSchema) ? undefined : 'be a list of schemas'
  if (forms.map.has(keyword)) {
    const isMember = (inner: unknown) => isSchema(inner) || (keyword === 'dependencies' && isTexts(inner))
    return isObject(value) && Object.values(value).every(isMember) ? undefined : 'be an object of schemas'
  }
  if (forms.single.has(keyword)) return isSchema(value) ? undefined : 'be a schema'
  return forms.list.has(keyword) ? 'be a list of schemas' : undefined
}

const references = new WeakMap<SchemaObject, Map<string, Schema | undefined>>()

/** The schema that a `$ref` points to: `#` or `#` with a JSON Pointer. Undefined: it does not exist. */
export function referredTo(root: SchemaObject, ref: string): Schema | undefined {
  const known = references.get(root) ?? new Map<string, Schema | undefined>()
  references.set(root, known)
  if (!known.has(ref)) known.set(ref, findReferred(root, ref))
  return known.get(ref)
}

function findReferred(root: SchemaObject, ref: string): Schema | undefined {
  if (!/^#(\/|$)/.test(ref)) return undefined
  let found: unknown = root
  for (const key of ref.split('/').slice(1)) {
    const name = decoded(key)
    if (typeof found !== 'object' || found === null || name === undefined || !Object.hasOwn(found, name))
      return undefined
    found = (found as SchemaObject)[name]
  }
  return isSchema(found) ? found : undefined
}

function decoded(key: string): string | undefined {
  try {
    return decodeURIComponent(key).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return undefined
  }
}

export function isObject(value: unknown): value is SchemaObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every(item => typeof item === 'string')

const isSchema = (value: unknown): value is Schema => typeof value === 'boolean' || isObject(value)

/** Checks that a schema is valid: each keyword has a value of the right form, and the work to evaluate it is bounded. */
import type { Meter } from '../meter.ts'
import { patternFault } from './run.ts'
import { formFault, isObject, isTexts, partsOf, referredTo, type Schema, type SchemaObject } from './schema.ts'

export const mostReferences = 1000
/** Schemas that apply to one value when references are followed. */
export const mostExpanded = 10_000
/** Schemas that apply to one value, each nested in the previous one. */
const mostInARow = 200

const types = ['null', 'boolean', 'object', 'array', 'number', 'string', 'integer']
const isCount = (value: unknown) => Number.isInteger(value) && (value as number) >= 0
const isNumber = (value: unknown) => typeof value === 'number'
const isText = (value: unknown) => typeof value === 'string'
const isType = (value: unknown) => types.includes(value as string)

const isTypes = (value: unknown) => {
  const all = [value].flat()
  return all.every(isType) && new Set(all).size === all.length
}

type Form = [isRight: (value: unknown) => boolean, must: string]
const count: Form = [isCount, 'be a whole number, 0 or more']
const number: Form = [isNumber, 'be a number']
const text: Form = [isText, 'be a string']

const keywordForms: Record<string, Form> = {
  $ref: text,
  type: [isTypes, `be one of ${types.join(', ')}, or a list of them without duplicates`],
  enum: [Array.isArray, 'be a list'],
  minimum: number,
  maximum: number,
  exclusiveMinimum: number,
  exclusiveMaximum: number,
  multipleOf: [value => isNumber(value) && (value as number) > 0, 'be a number above 0'],
  minLength: count,
  maxLength: count,
  minItems: count,
  maxItems: count,
  minContains: count,
  maxContains: count,
  minProperties: count,
  maxProperties: count,
  uniqueItems: [value => typeof value === 'boolean', 'be true or false'],
  pattern: text,
  format: text,
  required: [isTexts, 'be a list of names'],
  dependentRequired: [
    value => isObject(value) && Object.values(value).every(isTexts),
    'be an object of lists of names',
  ],
}

/** The fault of a schema, if it has one. The schema is plain JSON of at most 100 levels. */
export function schemaFault(meter: Meter, root: SchemaObject): string | undefined {
  const all = [...allIn(root)]
  const references = all.filter(({ schema }) => schema.$ref !== undefined).length
  if (references > mostReferences)
    return `it has ${references} references ($ref); ${mostReferences.toLocaleString('en')} are possible`
  for (const { schema, at } of all) {
    const fault = faultIn(meter, root, schema)
    if (fault !== undefined) return at === '' ? fault : `${at}: ${fault}`
  }
  return expansionFault(root, all)
}

interface Placed {
  readonly schema: SchemaObject
  readonly at: string
}

/** A schema, all schemas nested in it, and all that its references point to. */
function* allIn(root: SchemaObject): Generator<Placed> {
  const waiting: Placed[] = [{ schema: root, at: '' }]
  const known = new Set<SchemaObject>([root])
  const add = (schema: Schema | undefined, at: string) => {
    if (typeof schema !== 'object' || known.has(schema)) return
    known.add(schema)
    waiting.push({ schema, at })
  }
  for (const next of waiting) {
    yield next
    const { schema, at } = next
    for (const part of partsOf(schema)) add(part.schema, at === '' ? part.at : `${at}.${part.at}`)
    if (typeof schema.$ref === 'string') add(referredTo(root, schema.$ref), schema.$ref)
  }
}

function faultIn(meter: Meter, root: SchemaObject, schema: SchemaObject): string | undefined {
  for (const [keyword, value] of Object.entries(schema)) {
    const [isRight, must] = (Object.hasOwn(keywordForms, keyword) && keywordForms[keyword]) || []
    const wanted = isRight === undefined ? formFault(keyword, value) : isRight(value) ? undefined : must
    if (wanted !== undefined) return `${keyword} must ${wanted}`
  }
  const { $ref, pattern, patternProperties = {} } = schema as Record<string, string | undefined>
  if ($ref !== undefined && referredTo(root, $ref) === undefined)
    return `$ref "${$ref.slice(0, 200)}" does not exist in the schema`
  const patterns = [...(pattern === undefined ? [] : [pattern]), ...Object.keys(patternProperties)]
  for (const one of patterns) {
    const fault = patternFault(meter, one)
    if (fault !== undefined) return `${fault}; write patterns without lookaround and backreferences`
  }
  return undefined
}

/**
 * Follows references and everything that applies to the same value, starting from each schema. A short chain of references
 * that doubles at each link means exponential work, and a cycle never ends. Keywords that apply to a part of the value,
 * such as `properties`, are not followed: the value bounds them.
 */
function expansionFault(root: SchemaObject, all: readonly Placed[]): string | undefined {
  const sizes = new Map<SchemaObject, number>()
  const open = new Set<SchemaObject>()
  let fault: string | undefined
  const sizeOf = (schema: Schema | undefined): number => {
    if (typeof schema !== 'object' || fault !== undefined) return 1
    const known = sizes.get(schema)
    if (known !== undefined) return known
    if (open.has(schema)) fault = 'a reference ($ref) refers to itself without descending into the payload'
    else if (open.size === mostInARow) fault = `more than ${mostInARow} nested schemas apply to one value`
    if (fault !== undefined) return 1
    open.add(schema)
    const inner = [...partsOf(schema)].filter(({ isInPlace }) => isInPlace).map(part => part.schema)
    const meant = typeof schema.$ref === 'string' ? [referredTo(root, schema.$ref)] : []
    const size = [...inner, ...meant].reduce((sum: number, part) => sum + sizeOf(part), 1)
    open.delete(schema)
    sizes.set(schema, size)
    if (size > mostExpanded)
      fault ??= `more than ${mostExpanded.toLocaleString('en')} schemas apply to one value when references are followed`
    return size
  }
  for (const { schema, at } of all) {
    sizeOf(schema)
    if (fault !== undefined) return at === '' ? fault : `${at}: ${fault}`
  }
  return undefined
}

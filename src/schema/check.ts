/**
 * Schemas of values: each is a JSON Schema, carries the static type of its values, and explains in words what is wrong
 * with a value. They are TypeBox schemas, so TypeBox's own tools read them too. TypeBox itself is not loaded: its 300
 * files would triple the start-up time of a client.
 */
import type { Static, TRefine, TUnsafe } from 'typebox'
import { Problem } from '../kernel/problem.ts'
import { closestWord, truncate } from '../kernel/suggest.ts'

export type { Static }

/** Any JSON Schema. */
export type Schema = Readonly<Record<string, unknown>>

/** A JSON Schema that knows the static type of its values. `Static<typeof schema>` is that type. */
export interface Typed<Value = unknown> extends TUnsafe<Value> {
  readonly [keyword: string]: unknown
}

/** Completes the sentence "it must …", or is undefined if the value is valid. */
type Must = (value: unknown) => string | undefined

/** A schema that can check a value. */
export interface Field<Value = unknown> extends TRefine<Typed<Value>> {
  readonly '~must': Must
}
export type Fields = Readonly<Record<string, Field>>

/** The schema of an object. It keeps its properties by name, so that their comments reach the reader of the static type. */
export interface Shape<Required, Optional> extends Typed<Members<Required, Optional>> {
  readonly properties: Required & Optional
  readonly required?: readonly string[]
}
type Members<Required, Optional> = { readonly [Name in keyof Required]: ValueOf<Required[Name]> } & {
  readonly [Name in keyof Optional]?: ValueOf<Optional[Name]>
}
/** The static type of options that this table checks. All are optional. */
export type OptionsOf<Table> = { readonly [Name in keyof Table]?: ValueOf<Table[Name]> }
export type ValueOf<Schema> = Schema extends Typed<infer Value> ? Value : never

/** The fault of a value, as the end of the sentence "it must …"; undefined if it is valid. */
export function faultOf(field: Field, value: unknown): string | undefined {
  return field['~must'](value)
}

export function checkOptions(input: object, fields: Fields, where: string): void {
  const checks = checksOf(fields)
  for (const name of Object.keys(input)) {
    const value = (input as Record<string, unknown>)[name]
    const check = checks.get(name)
    if (check === undefined) {
      const meant = closestWord(name, Object.keys(fields))
      throw new Problem('OPTION_UNKNOWN', { at: where, option: truncate(name), ...(meant && { didYouMean: meant }) })
    }
    if (value === undefined) continue
    const fault = check(value)
    if (fault !== undefined) throw new Problem('OPTION_INVALID', { at: where, option: name, must: fault })
  }
}

const checksByTable = new WeakMap<Fields, ReadonlyMap<string, Must>>()

/** The checks of a table by name. Reading a map is faster than reading schemas of many shapes. */
function checksOf(fields: Fields): ReadonlyMap<string, Must> {
  const known = checksByTable.get(fields)
  if (known !== undefined) return known
  const made = new Map(Object.entries(fields).map(([name, field]) => [name, field['~must']]))
  checksByTable.set(fields, made)
  return made
}

/** A schema without a check, for values that Pawl itself writes. */
export function typed<Value = unknown>(schema: Schema): Typed<Value> {
  return hiding(schema, { '~unsafe': null }) as Typed<Value>
}

export function field<Value = unknown>(schema: Schema, must: Must): Field<Value> {
  const refinement = { check: (value: unknown) => must(value) === undefined, error: (value: unknown) => must(value) }
  return hiding(schema, { '~unsafe': null, '~refine': [refinement], '~must': must }) as unknown as Field<Value>
}

/** Like TypeBox, hides properties that are not part of the JSON Schema from JSON, copies and comparisons. */
function hiding(schema: Schema, hidden: Readonly<Record<string, unknown>>): object {
  const descriptors = Object.entries(hidden).map(([name, value]) => [name, { value }] as const)
  return Object.defineProperties({ ...schema }, Object.fromEntries(descriptors))
}

export function text(longest: number): Field<string> {
  return field({ type: 'string', minLength: 1, maxLength: longest, pattern: '^[^\\u0000]*$' }, value => {
    if (typeof value !== 'string' || value.length === 0) return 'be a non-empty string'
    if (value.length > longest) return `have at most ${longest} characters`
    return /\0/.test(value) || !value.isWellFormed() ? 'contain no NUL and no invalid Unicode' : undefined
  })
}

export function number({ from, to, whole = false }: { from: number; to: number; whole?: boolean }): Field<number> {
  return field({ type: whole ? 'integer' : 'number', minimum: from, maximum: to }, value => {
    if (typeof value !== 'number' || !Number.isFinite(value)) return 'be a number'
    if (whole && !Number.isInteger(value)) return 'be a whole number'
    return value < from || value > to ? `be from ${from} to ${to}` : undefined
  })
}

/** A value from a list of texts, booleans or both. */
export function oneOf<const Word extends string | boolean>(words: readonly Word[]): Field<Word> {
  return field(schemaOfWords(words), value =>
    words.some(word => word === value) ? undefined : `be one of ${words.map(word => JSON.stringify(word)).join(', ')}`,
  )
}

/** Every part has a type, and no enum holds booleans, because client generators drop operations otherwise. */
function schemaOfWords(words: readonly (string | boolean)[]): Schema {
  const texts = words.filter(word => typeof word === 'string')
  const booleans = words.filter(word => typeof word === 'boolean')
  const parts = [
    ...(booleans.length > 0 ? [{ type: 'boolean', ...(booleans.length === 1 && { const: booleans[0] }) }] : []),
    ...(texts.length > 0 ? [{ type: 'string', enum: texts }] : []),
  ]
  return parts.length === 1 ? parts[0]! : { anyOf: parts }
}

/** One of the words, or several of them. */
export function oneOrMore<const Word extends string>(words: readonly Word[]): Field<Word | readonly Word[]> {
  const one = oneOf(words)
  const schema = { anyOf: [one, { type: 'array', items: one, maxItems: words.length }] }
  return field(schema, value => (Array.isArray(value) ? firstFault(one, value) : faultOf(one, value)))
}

/** A list with a limited length. Its elements are checked elsewhere, where a fault can name its element. */
export function listOf<Item>(items: Field, most: number): Field<readonly Item[]> {
  return field({ type: 'array', items, maxItems: most }, value =>
    Array.isArray(value) && value.length <= most ? undefined : `be a list of at most ${most.toLocaleString('en')}`,
  )
}

export function orNull<Value>(other: Field<Value>): Field<Value | null> {
  const schema = { anyOf: [other, { type: 'null' }] }
  return field(schema, value => (value === null ? undefined : faultOf(other, value)))
}

/** An object with only these fields. */
export function nested<const Table extends Fields, const Name extends keyof Table & string = never>(
  fields: Table,
  required: readonly Name[] = [],
): Shape<Pick<Table, Name>, Omit<Table, Name>> & Field {
  const schema = {
    type: 'object',
    properties: fields,
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  }
  const checks = checksOf(fields)
  return field(schema, value => {
    if (!isObject(value)) return 'be an object'
    for (const [name, inner] of Object.entries(value)) {
      const check = checks.get(name)
      if (check === undefined) {
        const meant = closestWord(name, Object.keys(fields))
        return `not have "${truncate(name)}"${meant === undefined ? '' : `; did you mean "${meant}"?`}`
      }
      const fault = inner === undefined ? undefined : check(inner)
      if (fault !== undefined) return `have a "${name}" that must ${fault}`
    }
    const missing = required.find(name => value[name] === undefined)
    return missing === undefined ? undefined : `have a "${missing}"`
  }) as never
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The first fault of any of these values. */
export function firstFault(field: Field, values: readonly unknown[]): string | undefined {
  for (const value of values) {
    const fault = faultOf(field, value)
    if (fault !== undefined) return fault
  }
  return undefined
}

export const flag = oneOf([true, false])

export const anything: Field = field({}, () => undefined)

export const object: Field<Record<string, unknown>> = field({ type: 'object' }, value =>
  isObject(value) ? undefined : 'be an object',
)

export const callback = field({}, value => (typeof value === 'function' ? undefined : 'be a function'))

export const abortSignal = field<AbortSignal>({}, value =>
  value instanceof AbortSignal ? undefined : 'be an AbortSignal',
)

export const moment: Field<Date | string> = field({ type: 'string', format: 'date-time' }, value => {
  const date = value instanceof Date ? value : typeof value === 'string' ? new Date(value) : undefined
  if (date === undefined || Number.isNaN(date.getTime())) return 'be a Date or an ISO 8601 string'
  return date.getUTCFullYear() < 1970 || date.getUTCFullYear() > 9999 ? 'be between the years 1970 and 9999' : undefined
})

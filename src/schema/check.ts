/** Options are checked here, once, before anything is done with them: by a table of fields. */
import { Problem } from '../kernel/problem.ts'
import { closestWord, truncate } from '../kernel/suggest.ts'

/** Says what a value must be, or nothing if it is. */
export interface Field {
  (value: unknown): string | undefined
  /** The same for machines, as far as JSON Schema can say it. */
  readonly schema?: Schema
  /** What an object must hold: for whoever wants every fault in it, and where it is. */
  readonly shape?: Shape
}
export type Fields = Readonly<Record<string, Field>>
export type Schema = Readonly<Record<string, unknown>>

export interface Shape {
  readonly fields: Fields
  readonly required: readonly string[]
}

export function checkOptions(given: object, fields: Fields, where: string): void {
  for (const name of Object.keys(given)) {
    const value = (given as Record<string, unknown>)[name]
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (field === undefined) {
      const meant = closestWord(name, Object.keys(fields))
      throw new Problem('OPTION_UNKNOWN', { at: where, option: truncate(name), ...(meant && { didYouMean: meant }) })
    }
    if (value === undefined) continue
    const fault = field(value)
    if (fault !== undefined) throw new Problem('OPTION_INVALID', { at: where, option: name, must: fault })
  }
}

export function field(schema: Schema, check: (value: unknown) => string | undefined): Field {
  return Object.assign(check, { schema })
}

export function text(longest: number): Field {
  return field({ type: 'string', minLength: 1, maxLength: longest, pattern: '^[^\\u0000]*$' }, value => {
    if (typeof value !== 'string' || value.length === 0) return 'be a text that is not empty'
    if (value.length > longest) return `have at most ${longest} characters`
    return /\0/.test(value) || !value.isWellFormed() ? 'hold no NUL and no broken characters' : undefined
  })
}

export function number({ from, to, whole = false }: { from: number; to: number; whole?: boolean }): Field {
  return field({ type: whole ? 'integer' : 'number', minimum: from, maximum: to }, value => {
    if (typeof value !== 'number' || !Number.isFinite(value)) return 'be a number'
    if (whole && !Number.isInteger(value)) return 'be a whole number'
    return value < from || value > to ? `be from ${from} to ${to}` : undefined
  })
}

/** A value from a list of texts, booleans or both. */
export function oneOf(words: readonly (string | boolean)[]): Field {
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

export function orNull(other: Field): Field {
  const schema = { anyOf: [other.schema ?? {}, { type: 'null' }] }
  return field(schema, value => (value === null ? undefined : other(value)))
}

export function nested(fields: Fields, required: readonly string[] = []): Field {
  const check = field(schemaOf({ fields, required }), value => {
    if (!isObject(value)) return 'be an object'
    for (const [name, inner] of Object.entries(value)) {
      const known = Object.hasOwn(fields, name) ? fields[name] : undefined
      if (known === undefined) {
        const meant = closestWord(name, Object.keys(fields))
        return `not have "${truncate(name)}"${meant === undefined ? '' : `; did you mean "${meant}"?`}`
      }
      const fault = inner === undefined ? undefined : known(inner)
      if (fault !== undefined) return `have a "${name}" that must ${fault}`
    }
    const missing = required.find(name => value[name] === undefined)
    return missing === undefined ? undefined : `have a "${missing}"`
  })
  return Object.assign(check, { shape: { fields, required } })
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function schemaOf({ fields, required }: Shape): Schema {
  const properties = Object.fromEntries(Object.entries(fields).map(([name, { schema }]) => [name, schema ?? {}]))
  return { type: 'object', properties, ...(required.length > 0 && { required }), additionalProperties: false }
}

export const anything: Field = field({}, () => undefined)

export const object: Field = field({ type: 'object' }, value => (isObject(value) ? undefined : 'be an object'))

export const moment: Field = value => {
  const date = value instanceof Date ? value : typeof value === 'string' ? new Date(value) : undefined
  if (date === undefined || Number.isNaN(date.getTime())) return 'be a Date or an ISO 8601 text'
  return date.getUTCFullYear() < 1970 || date.getUTCFullYear() > 9999 ? 'be between the years 1970 and 9999' : undefined
}

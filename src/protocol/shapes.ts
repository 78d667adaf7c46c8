/** What views are made of, as JSON Schema. */
import type { Schema } from '../schema/check.ts'

export const text = { type: 'string' }
export const whole = { type: 'integer' }
export const figure = { type: 'number' }
export const flag = { type: 'boolean' }
export const id = { type: 'string', format: 'uuid' }
export const at = { type: 'string', format: 'date-time' }
export const anything = {}
export const object = { type: 'object' }
export const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] })
export const list = (items: Schema): Schema => ({ type: 'array', items })
export const words = (...all: readonly string[]): Schema => ({ type: 'string', enum: all })
export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })

/** Every field is there; those that are not, are named. */
export function view<View>(
  properties: Record<keyof View & string, Schema>,
  optional: readonly (keyof View & string)[] = [],
) {
  const required = (Object.keys(properties) as (keyof View & string)[]).filter(name => !optional.includes(name))
  return { type: 'object', properties, required, additionalProperties: false }
}

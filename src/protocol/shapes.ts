/** Parts of schemas for what Pawl writes. Each carries the static type of its values; nothing checks them at run time. */
import { type Schema, type Shape, type Typed, typed, type ValueOf } from '../schema/check.ts'

export { anything, flag, object } from '../schema/check.ts'

export const text = typed<string>({ type: 'string' })
export const whole = typed<number>({ type: 'integer' })
export const figure = typed<number>({ type: 'number' })
export const id = typed<string>({ type: 'string', format: 'uuid' })
export const at = typed<string>({ type: 'string', format: 'date-time' })

/** Interfaces keep the inner schema by name, so that comments inside it reach the reader of the static type too. */
export interface OrNull<Inner> extends Typed<ValueOf<Inner> | null> {
  readonly anyOf: readonly [Inner, Schema]
}
export interface List<Inner> extends Typed<readonly ValueOf<Inner>[]> {
  readonly items: Inner
}

export const orNull = <const Inner extends Schema>(schema: Inner): OrNull<Inner> =>
  typed({ anyOf: [schema, { type: 'null' }] }) as OrNull<Inner>

export const list = <const Inner extends Schema>(items: Inner): List<Inner> =>
  typed({ type: 'array', items }) as List<Inner>

export const words = <const Word extends string>(...all: readonly Word[]): Typed<Word> =>
  typed({ type: 'string', enum: all })

/** A schema of the OpenAPI document, by name. */
export const ref = <Value = unknown>(name: string): Typed<Value> => typed({ $ref: `#/components/schemas/${name}` })

type Table = Readonly<Record<string, Typed>>

/** An object that Pawl writes. Its static type is read off it. */
export function shape<const Required extends Table, const Optional extends Table = Record<never, Typed>>(
  required: Required,
  optional?: Optional,
): Shape<Required, Optional> {
  return view({ ...required, ...optional }, Object.keys(optional ?? {})) as never
}

/** An object of a type that is written by hand: every field is there, except those that are named. */
export function view<View>(
  properties: Record<keyof View & string, Schema>,
  optional: readonly (keyof View & string)[] = [],
) {
  const required = (Object.keys(properties) as (keyof View & string)[]).filter(name => !optional.includes(name))
  return { type: 'object', properties, required, additionalProperties: false }
}

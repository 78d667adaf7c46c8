/** Fields of requests. A field carries the type of its value, so handlers need no interface beside the table of fields. */
import {
  anything,
  type Field,
  type Fields,
  field,
  isObject,
  nested,
  number,
  oneOf,
  type Schema,
} from '../../schema/check.ts'
import { isId } from '../../schema/fields.ts'

export interface RequestField<Value> {
  readonly check: Field
  /** Parses text, because queries contain nothing else. Returns undefined for text that the check should refuse. */
  readonly parse?: (text: string) => Value | undefined
  /** The value of a field that is absent. */
  readonly default?: Value
  /** Null is a value of this field, even where null otherwise means absent. */
  readonly takesNull?: true
}

export type FieldTable = Readonly<Record<string, RequestField<unknown>>>

type FieldValue<Any> = Any extends RequestField<infer Value> ? Value : never

/** The values that a table of fields reads. A field is optional unless the reader requires it. */
export type ValuesOf<Table, Required extends keyof Table = never> = {
  readonly [Name in Required]: FieldValue<Table[Name]>
} & { readonly [Name in Exclude<keyof Table, Required>]?: FieldValue<Table[Name]> }

export const fieldOf = <Value>(check: Field): RequestField<Value> => ({ check })

export const textField = (check: Field): RequestField<string> => ({ check })

export const anyText = textField(
  field({ type: 'string' }, value => (typeof value === 'string' ? undefined : 'be a text')),
)

export const anyJson: RequestField<unknown> = { check: anything, takesNull: true }

export const jsonObject = fieldOf<Record<string, unknown>>(
  field({ type: 'object' }, value => (isObject(value) ? undefined : 'be an object')),
)

export const anyList = fieldOf<readonly unknown[]>(
  field({ type: 'array' }, value => (Array.isArray(value) ? undefined : 'be a list')),
)

export const flag: RequestField<boolean> = {
  check: oneOf([true, false]),
  parse: text => ({ true: true, false: false })[text],
}

const digits = (text: string) => (/^\d{1,9}$/.test(text) ? Number(text) : undefined)

/** `parse` decides which texts the dialect accepts as numbers. */
export function wholeNumber(from: number, to: number, parse: (text: string) => number | undefined = digits) {
  return { check: number({ from, to, whole: true }), parse } satisfies RequestField<number>
}

export const someNumber = (from: number, to: number) => fieldOf<number>(number({ from, to }))

export const oneWordOf = <Word extends string>(words: readonly Word[]) => fieldOf<Word>(oneOf(words))

export const uuid = textField(field({ type: 'string' }, value => (isId(value) ? undefined : 'be a UUID')))

/** An object with these fields only. */
export function objectOf<Table extends FieldTable>(table: Table): RequestField<ValuesOf<Table>> {
  return { check: nested(checksOf(table)) }
}

/** Documents the body that a table describes. */
export function bodySchema<Table extends FieldTable>(
  table: Table,
  required: readonly (keyof Table & string)[],
): Schema {
  return nested(checksOf(table), required)
}

function checksOf(table: FieldTable): Fields {
  return Object.fromEntries(Object.entries(table).map(([name, { check }]) => [name, check]))
}

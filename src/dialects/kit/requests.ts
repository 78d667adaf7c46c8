/** Reads the body and the query of a request by their fields, which carry the types of their values. */
import { Problem } from '../../kernel/problem.ts'
import { closestWord, truncate } from '../../kernel/suggest.ts'
import {
  type Field,
  type Fields,
  faultOf,
  field,
  flag,
  isObject,
  number,
  type Shape,
  typed,
  type ValueOf,
} from '../../schema/check.ts'

/** A field with a default, or one that may be sent as text, because queries contain nothing else. */
export interface ParsedField<Value = unknown> {
  readonly check: Field<Value>
  /** Returns undefined for text that the check should refuse. */
  readonly parse?: (text: string) => Value | undefined
  /** The value of a field that is absent. */
  readonly default?: Value
}

export type FieldTable = Readonly<Record<string, Field | ParsedField>>

type ValuesOf<Table> = {
  readonly [Name in keyof Table]?: Table[Name] extends ParsedField<infer Value> ? Value : ValueOf<Table[Name]>
}

export const anyText = field<string>({ type: 'string' }, value =>
  typeof value === 'string' ? undefined : 'be a string',
)

export const anyList = field<readonly unknown[]>({ type: 'array' }, value =>
  Array.isArray(value) ? undefined : 'be a list',
)

export const parsedFlag: ParsedField<boolean> = { check: flag, parse: text => ({ true: true, false: false })[text] }

const digits = (text: string) => (/^\d{1,9}$/.test(text) ? Number(text) : undefined)

/** `parse` decides which texts the dialect accepts as numbers. */
export function parsedWhole(from: number, to: number, parse: (text: string) => number | undefined = digits) {
  return { check: number({ from, to, whole: true }), parse } satisfies ParsedField<number>
}

/** A body with these fields. Others are ignored, and null counts as absent unless a field takes it. */
export function openBody<const Table extends Fields, const Name extends keyof Table & string = never>(
  fields: Table,
  required: readonly Name[] = [],
): Shape<Pick<Table, Name>, Omit<Table, Name>> {
  return typed({ type: 'object', properties: fields, required }) as never
}

/** The schema of a body. One that was made by `nested` refuses unknown fields and null. */
type BodySchema = Shape<Fields, unknown>

/** `at` names the object in refusals, for example `body[2]`. */
export function readBody<Body extends BodySchema>(body: unknown, schema: Body, at = 'body'): ValueOf<Body> {
  if (!isObject(body)) throw new Problem('BODY_INVALID', { why: `${at === 'body' ? 'it' : at} must be an object` })
  const { properties, required = [], additionalProperties } = schema
  const values = readOrRefuse(body, properties as Fields, { at, strict: additionalProperties === false, parse: false })
  const missing = required.find(name => !Object.hasOwn(values, name))
  if (missing !== undefined) throw new Problem('OPTION_INVALID', { at, option: missing, must: 'be given' })
  return values as ValueOf<Body>
}

/** A parameter that is given twice arrives as a list, which every check refuses. `strict`: unknown ones are refused. */
export function readQuery<Table extends FieldTable>(
  query: Readonly<Record<string, unknown>>,
  table: Table,
  { strict = false }: { readonly strict?: boolean } = {},
): ValuesOf<Table> {
  return readOrRefuse(query, table, { at: 'query', strict, parse: true }) as ValuesOf<Table>
}

interface ReadRules {
  readonly at: string
  readonly strict: boolean
  readonly parse: boolean
}

function readOrRefuse(input: Readonly<Record<string, unknown>>, table: FieldTable, { at, strict, parse }: ReadRules) {
  const unknown = strict ? Object.keys(input).find(name => !Object.hasOwn(table, name)) : undefined
  if (unknown !== undefined) {
    const didYouMean = closestWord(unknown, Object.keys(table))
    throw new Problem('OPTION_UNKNOWN', { at, option: truncate(unknown), ...(didYouMean && { didYouMean }) })
  }
  const { values, faults } = readFields(input, table, { parse, nulls: strict ? 'checked' : 'absent' })
  for (const { name, must } of faults) throw new Problem('OPTION_INVALID', { at, option: name, must })
  return values
}

interface FieldFault {
  readonly name: string
  readonly value: unknown
  readonly must: string
  readonly check: Field
}

/** Reads all fields of a table, with their defaults, and collects every fault. */
export function readFields(
  input: Readonly<Record<string, unknown>>,
  table: FieldTable,
  { parse, nulls }: { readonly parse: boolean; readonly nulls: 'absent' | 'checked' },
) {
  const values: Record<string, unknown> = {}
  const faults: FieldFault[] = []
  for (const [name, entry] of Object.entries(table)) {
    const { check, ...parsed }: Partial<ParsedField> & Pick<ParsedField, 'check'> =
      '~must' in entry ? { check: entry } : entry
    const sent = Object.hasOwn(input, name) ? input[name] : undefined
    const isAbsent = sent === null && nulls === 'absent' && faultOf(check, null) !== undefined
    if (sent === undefined || isAbsent) {
      if (Object.hasOwn(parsed, 'default')) values[name] = parsed.default
      continue
    }
    const value = (parse && typeof sent !== 'object' ? parsed.parse?.(String(sent)) : undefined) ?? sent
    const must = faultOf(check, value)
    if (must === undefined) values[name] = value
    else faults.push({ name, value, must, check })
  }
  return { values, faults }
}

/** Reads the body and the query of a request by a table of fields. */
import { Problem } from '../../kernel/problem.ts'
import { closestWord, truncate } from '../../kernel/suggest.ts'
import { type Field, faultOf, isObject } from '../../schema/check.ts'
import type { FieldTable, ValuesOf } from './fields.ts'

export interface ReadRules<Required extends string> {
  readonly required?: readonly Required[]
  /** Refuses fields that are not in the table, and null where a field does not allow it. Default: both count as absent. */
  readonly strict?: boolean
  /** Names the object in refusals, for example `body[2]`. */
  readonly at?: string
}

export function readBody<Table extends FieldTable, Required extends keyof Table & string = never>(
  body: unknown,
  table: Table,
  { at = 'body', ...rules }: ReadRules<Required> = {},
): ValuesOf<Table, Required> {
  if (!isObject(body)) throw new Problem('BODY_INVALID', { why: `${at === 'body' ? 'it' : at} must be an object` })
  return readOrRefuse(body, table, { ...rules, at, parse: false })
}

/** A parameter that is given twice arrives as a list, which every check refuses. */
export function readQuery<Table extends FieldTable>(
  query: Readonly<Record<string, unknown>>,
  table: Table,
  { strict = false }: Pick<ReadRules<never>, 'strict'> = {},
): ValuesOf<Table> {
  return readOrRefuse(query, table, { at: 'query', strict, parse: true })
}

function readOrRefuse<Table extends FieldTable, Required extends keyof Table & string = never>(
  given: Readonly<Record<string, unknown>>,
  table: Table,
  { at, required = [], strict = false, parse }: ReadRules<Required> & { readonly parse: boolean },
): ValuesOf<Table, Required> {
  const unknown = strict ? Object.keys(given).find(name => !Object.hasOwn(table, name)) : undefined
  if (unknown !== undefined) {
    const didYouMean = closestWord(unknown, Object.keys(table))
    throw new Problem('OPTION_UNKNOWN', { at, option: truncate(unknown), ...(didYouMean && { didYouMean }) })
  }
  const { values, faults } = readFields(given, table, { parse, nulls: strict ? 'checked' : 'absent' })
  for (const { name, must } of faults) throw new Problem('OPTION_INVALID', { at, option: name, must })
  const missing = required.find(name => !Object.hasOwn(values, name))
  if (missing !== undefined) throw new Problem('OPTION_INVALID', { at, option: missing, must: 'be given' })
  return values as ValuesOf<Table, Required>
}

export interface FieldFault {
  readonly name: string
  readonly value: unknown
  readonly must: string
  readonly check: Field
}

/** Reads all fields of a table, with their defaults, and collects every fault. */
export function readFields(
  given: Readonly<Record<string, unknown>>,
  table: FieldTable,
  { parse, nulls }: { readonly parse: boolean; readonly nulls: 'absent' | 'checked' },
) {
  const values: Record<string, unknown> = {}
  const faults: FieldFault[] = []
  for (const [name, field] of Object.entries(table)) {
    const sent = Object.hasOwn(given, name) ? given[name] : undefined
    if (sent === undefined || (sent === null && nulls === 'absent' && field.takesNull !== true)) {
      if (Object.hasOwn(field, 'default')) values[name] = field.default
      continue
    }
    const parsed = parse && typeof sent !== 'object' ? field.parse?.(String(sent)) : undefined
    const value = parsed ?? sent
    const must = faultOf(field.check, value)
    if (must === undefined) values[name] = value
    else faults.push({ name, value, must, check: field.check })
  }
  return { values, faults }
}

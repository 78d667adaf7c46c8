/**
 * The fields of requests, and errors as FastAPI sends them: `{ detail }`, which is a text, or for an invalid request a
 * list.
 */
import { list, text, view } from '../../protocol/shapes.ts'
import { type Field, flag, oneOf, orNull } from '../../schema/check.ts'
import { type Answer, type Fault, good } from '../dialect.ts'
import { type Rewordings, reword, rewordingOf } from '../kit/refusals.ts'
import { anyText, type FieldTable, type ParsedField, parsedWhole, readFields } from '../kit/requests.ts'
import { statuses } from './words.ts'

/** A pipeline with this name in the server's settings replaces this one. */
export const defaultName = 'default'

const flags: Readonly<Record<string, boolean>> = {
  ...{ true: true, t: true, yes: true, y: true, on: true, 1: true },
  ...{ false: false, f: false, no: false, n: false, off: false, 0: false },
}

/** As in the original, numbers and switches may be sent as text. */
const parseFlag = (text: string) => flags[text.toLowerCase()]
const parseWhole = (text: string) => (/^[+-]?\d{1,15}$/.test(text.trim()) ? Number(text) : undefined)

const off: ParsedField<boolean> = { check: flag, parse: parseFlag, default: false }
const wholeOr = (usual: number, from: number, to: number): ParsedField<number> => ({
  ...parsedWhole(from, to, parseWhole),
  default: usual,
})

/** Fields of a request for any pipeline. */
export const switches: FieldTable = { enable_evaluation: off, enable_auto_optimize: off }

/** Fields of a request for this pipeline. */
export const config: FieldTable = {
  max_items_per_source: wholeOr(25, 1, 100),
  classify_limit: wholeOr(200, 1, 500),
  neutralize_limit: wholeOr(25, 1, 500),
  max_workers: wholeOr(5, 1, 10),
  cutoff_hours: wholeOr(24, 1, 72),
  teacher_model: { check: orNull(anyText), default: null },
  eval_sample_size: wholeOr(10, 1, 50),
  ...switches,
}

export const listing = { limit: wholeOr(10, 1, 1000), status: oneOf(statuses) }

/** One fault of a request. */
interface Detail {
  readonly type: string
  readonly loc: readonly (string | number)[]
  readonly msg: string
  readonly input: unknown
}

const detailSchema = view<Detail>({ type: text, loc: list({ type: ['string', 'integer'] }), msg: text, input: {} })

export const faultSchema = view<{ detail: unknown }>({ detail: { anyOf: [text, list(detailSchema)] } })

export const invalid = (details: readonly Detail[]): Answer => good({ detail: details }, 422)

/** Reads the fields of a table and keeps all others unchanged. FastAPI's clients are told every fault. */
export function readAll(input: Readonly<Record<string, unknown>>, table: FieldTable, place: 'body' | 'query') {
  const { values, faults } = readFields(input, table, { parse: true, nulls: 'checked' })
  const details = faults.map(({ name, value, must, check }): Detail => {
    return { type: faultType(check, value), msg: `It must ${must}.`, loc: [place, name], input: input[name] }
  })
  return details.length > 0 ? { details } : { values: { ...input, ...values } }
}

/** FastAPI's name for the fault of a value. */
function faultType(schema: Field, value: unknown): string {
  if (schema.type === 'boolean') return 'bool_parsing'
  if (schema.enum !== undefined) return 'enum'
  if (schema.type !== 'integer') return 'string_type'
  if (!Number.isInteger(value)) return 'int_parsing'
  return (value as number) < (schema.minimum as number) ? 'greater_than_equal' : 'less_than_equal'
}

const rewordings: Rewordings = {
  ROUTE_NOT_FOUND: { message: 'Not Found' },
  METHOD_REFUSED: { message: 'Method Not Allowed' },
  KEY_MISSING: { message: 'Invalid or missing API key' },
  BUG: { message: 'Internal Server Error' },
  JOB_NOT_FOUND: { message: ({ id }) => `Job ${id} not found` },
}

/** Problems with the body, as the type of fault that FastAPI would report. */
const bodyFaults: Rewordings = {
  BODY_INVALID: { code: 'json_invalid' },
  BODY_TYPE: { code: 'value_error' },
  SPEC_INVALID: { code: 'value_error' },
  PAYLOAD_INVALID: { code: 'value_error' },
  PIPELINE_UNKNOWN: {
    code: 'value_error',
    // The default pipeline exists even if the settings do not name one.
    message: ({ pipeline, known }) => {
      const names = new Set([defaultName, ...(known as readonly string[])])
      return `No pipeline is called ${JSON.stringify(pipeline)}. Known: ${[...names].join(', ')}.`
    },
  },
}

export function refuse(fault: Fault): Answer {
  if (rewordingOf(fault.code, bodyFaults) === undefined) {
    const { status, message } = reword(fault, rewordings)
    return good({ detail: message }, status)
  }
  const { code: type, message: msg } = reword(fault, bodyFaults)
  const loc = fault.code === 'PIPELINE_UNKNOWN' ? ['body', 'pipeline'] : ['body']
  return invalid([{ type, loc, msg, input: null }])
}

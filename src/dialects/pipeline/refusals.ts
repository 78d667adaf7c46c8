/** Errors as FastAPI sends them: `{ detail }`, which is a text, or for an invalid request a list. */

import { list, text, view } from '../../protocol/shapes.ts'
import type { Field } from '../../schema/check.ts'
import { type Answer, type Fault, good } from '../dialect.ts'
import type { FieldTable } from '../kit/fields.ts'
import { readFields } from '../kit/read.ts'
import { type Rewordings, reword, rewordingOf } from '../kit/refusals.ts'
import { defaultName } from './default-pipeline.ts'

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
export function readAll(given: Readonly<Record<string, unknown>>, table: FieldTable, place: 'body' | 'query') {
  const { values, faults } = readFields(given, table, { parse: true, nulls: 'checked' })
  const details = faults.map(({ name, value, must, check }): Detail => {
    return { type: faultType(check, value), msg: `It must ${must}.`, loc: [place, name], input: given[name] }
  })
  return details.length > 0 ? { details } : { values: { ...given, ...values } }
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

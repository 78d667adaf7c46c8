/** What goes wrong, as FastAPI says it: `{ detail }`, a text, or for what was asked wrongly a list. */

import { list, text } from '../../protocol/shapes.ts'
import type { Schema } from '../../schema/check.ts'
import { type Answer, type Fault, good } from '../dialect.ts'
import { defaultName } from './default-pipeline.ts'
import type { Detail } from './reading.ts'

const detail: Schema = {
  type: 'object',
  properties: { type: text, loc: list({ type: ['string', 'integer'] }), msg: text, input: {} },
  required: ['type', 'loc', 'msg', 'input'],
  additionalProperties: false,
}

export const faults: Schema = {
  type: 'object',
  properties: { detail: { anyOf: [text, list(detail)] } },
  required: ['detail'],
  additionalProperties: false,
}

export const invalid = (details: readonly Detail[]): Answer => good({ detail: details }, 422)

const plain: Readonly<Record<string, string>> = {
  ROUTE_NOT_FOUND: 'Not Found',
  METHOD_REFUSED: 'Method Not Allowed',
  KEY_MISSING: 'Invalid or missing API key',
  BUG: 'Internal Server Error',
}

/** What is wrong with the body, and which part of it. */
const ofBody: Readonly<Record<string, string[]>> = {
  BODY_INVALID: [],
  BODY_TYPE: [],
  PIPELINE_UNKNOWN: ['pipeline'],
  SPEC_INVALID: [],
  PAYLOAD_INVALID: [],
}

/** The default one is there also where the settings name none. */
function noPipeline({ pipeline, known }: Fault['details']): string {
  const names = new Set([defaultName, ...(known as readonly string[])])
  return `No pipeline is called ${JSON.stringify(pipeline)}. Known: ${[...names].join(', ')}.`
}

export function refuse({ status, code, message, details }: Fault): Answer {
  const part = ofBody[code]
  if (part !== undefined) {
    const type = code === 'BODY_INVALID' ? 'json_invalid' : 'value_error'
    const msg = code === 'PIPELINE_UNKNOWN' ? noPipeline(details) : message
    return invalid([{ type, loc: ['body', ...part], msg, input: null }])
  }
  return good({ detail: plain[code] ?? (code === 'JOB_NOT_FOUND' ? `Job ${details.id} not found` : message) }, status)
}

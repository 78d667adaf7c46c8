/** Checks payloads against the JSON Schema that a worker sets for a task type, for producers without that worker's code. */
import { evaluate, TooDeep } from './json-schema/evaluate.ts'
import { schemaFault } from './json-schema/limits.ts'
import { Meter, OutOfSteps } from './meter.ts'

export type PayloadSchema = Readonly<Record<string, unknown>>

/** Less than 100 milliseconds. A payload of a megabyte takes about as much with a schema of many keywords and patterns. */
const mostSteps = 1_000_000

/** Maximum steps of one request for checking payloads, for all schemas together. */
export const payloadMeter = () => new Meter(mostSteps)

/** The faults of a payload. An unusable schema, such as one that an older version accepted, is a fault too. */
export function faultsIn(schema: PayloadSchema, payload: unknown, meter = payloadMeter()): string[] {
  try {
    const must = schemaFault(meter, schema)
    if (must !== undefined) return [`the schema of this type cannot be used (${must}); register the type again`]
    const faults: string[] = []
    evaluate({ root: schema, meter, patterns: new Map(), path: [], depth: 0, faults }, schema, payload)
    return faults
  } catch (error) {
    if (error instanceof OutOfSteps || error instanceof TooDeep)
      return [`this payload cannot be checked against the schema of its type: ${error.message}`]
    throw error
  }
}

/** The fault of a schema; undefined: it is valid. All of it is checked, including parts that no payload reaches. */
export function faultOf(schema: PayloadSchema): string | undefined {
  try {
    const fault = schemaFault(payloadMeter(), schema)
    return fault && `be a JSON Schema: ${fault}`
  } catch (error) {
    if (error instanceof OutOfSteps) return `be a simpler JSON Schema: ${error.message}`
    throw error
  }
}

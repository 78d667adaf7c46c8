/**
 * Checks payloads against the JSON Schema (2020-12) of their task type in counted steps. Schemas are untrusted, and a
 * small one can mean exponential work: references that double at every level, nested alternatives, patterns. JSON Schema
 * libraries cannot be stopped, so the keywords are implemented here. Each schema and each keyword costs a step, and a
 * keyword that traverses a value also costs the value's size, so the work ends with the meter's steps.
 *
 * A schema must have passed `schemaFault`: its keywords have values of the right form, and its references resolve.
 */
import { Meter, OutOfSteps } from '../meter.ts'
import { assertions } from './assertions.ts'
import { arrayKeywords, objectKeywords } from './container-keywords.ts'
import { schemaFault } from './limits.ts'
import { add, apart, type Evaluated, type Keyword, noteSteps, quietly, type Run, refuse } from './run.ts'
import { referredTo, type Schema } from './schema.ts'

/** Far from the end of the stack, and more than a payload of 100 levels needs with a realistic schema. */
const mostDepth = 1000

class TooDeep extends Error {
  constructor() {
    super(`it applies more than ${mostDepth.toLocaleString('en')} schemas one inside of the other`)
  }
}

/** Whether a value is valid under a schema. `evaluated`: collects what was evaluated, for an outer schema. */
function evaluate(run: Run, schema: Schema, value: unknown, evaluated?: Evaluated): boolean {
  if (typeof schema === 'boolean') return schema || refuse(run, () => 'False boolean schema.')
  if (++run.depth > mostDepth) throw new TooDeep()
  run.meter.spend(1)
  const wants = Object.hasOwn(schema, 'unevaluatedProperties') || Object.hasOwn(schema, 'unevaluatedItems')
  const own = wants ? new Set<string | number>() : evaluated
  let isValid = true
  for (const name in schema) {
    run.meter.spend(1)
    const keyword = keywords.get(name)
    if (keyword !== undefined && !keyword(run, schema, value, own, evaluate)) isValid = false
    if (!isValid && run.faults === undefined) break
  }
  if (wants && isValid) {
    isValid = unevaluated(run, schema, value, own!, evaluate)
    if (isValid) merge(run, own!, evaluated)
  }
  run.depth -= 1
  return isValid
}

/** Runs after all other keywords of the schema, because it applies to what they did not evaluate. */
const unevaluated: Keyword = (run, schema, value, evaluated, apply) => {
  const { unevaluatedProperties: rest, unevaluatedItems: items } = schema as Record<string, Schema | undefined>
  if (typeof value !== 'object' || value === null) return true
  const inner = Array.isArray(value) ? items : rest
  if (inner === undefined) return true
  let isValid = true
  for (const key of Array.isArray(value) ? value.keys() : Object.keys(value)) {
    run.meter.spend(noteSteps)
    if (evaluated!.has(key)) continue
    evaluated!.add(key)
    run.path.push(key)
    if (!apply(run, inner, (value as Record<string | number, unknown>)[key])) isValid = false
    run.path.pop()
  }
  return isValid
}

function merge(run: Run, from: Evaluated, into: Evaluated | undefined): void {
  if (into === undefined) return
  run.meter.spend(from.size * noteSteps)
  for (const key of from) into.add(key)
}

/** Applies a schema whose annotations count only if it is valid. */
function attempt(run: Run, schema: Schema, value: unknown, evaluated: Evaluated | undefined): boolean {
  run.meter.spend(1)
  const own = evaluated && new Set<string | number>()
  const isValid = evaluate(run, schema, value, own)
  if (isValid && own !== undefined) merge(run, own, evaluated)
  return isValid
}

const inPlace: Record<string, Keyword> = {
  $ref(run, { $ref }, value, evaluated) {
    return evaluate(run, referredTo(run.root, $ref as string)!, value, evaluated)
  },
  allOf(run, { allOf }, value, evaluated) {
    // Not `every`, because all faults are reported.
    return (allOf as Schema[]).filter(schema => !evaluate(run, schema, value, evaluated)).length === 0
  },
  anyOf(run, { anyOf }, value, evaluated) {
    const tried = (anyOf as Schema[]).map(schema => apart(run, () => attempt(run, schema, value, evaluated)))
    if (tried.some(({ isValid }) => isValid)) return true
    refuse(run, () => 'Instance does not match any subschemas.')
    for (const { faults } of tried) add(run, faults)
    return false
  },
  oneOf(run, { oneOf }, value, evaluated) {
    const tried = (oneOf as Schema[]).map(schema => apart(run, () => attempt(run, schema, value, evaluated)))
    const matches = tried.filter(({ isValid }) => isValid).length
    if (matches === 1) return true
    refuse(run, () => `Instance does not match exactly one subschema (${matches} matches).`)
    for (const { faults } of tried) add(run, faults)
    return false
  },
  not(run, { not }, value) {
    const isValid = quietly(run, () => evaluate(run, not as Schema, value))
    return !isValid || refuse(run, () => 'Instance matched "not" schema.')
  },
  if(run, schema, value, evaluated) {
    const isMet = quietly(run, () => attempt(run, schema.if as Schema, value, evaluated))
    const branch = (isMet ? schema.then : schema.else) as Schema | undefined
    return branch === undefined || evaluate(run, branch, value, evaluated)
  },
}

const keywords = new Map(Object.entries({ ...inPlace, ...assertions, ...objectKeywords, ...arrayKeywords }))

export type PayloadSchema = Readonly<Record<string, unknown>>

/** Less than 100 milliseconds. A payload of a megabyte takes about as much with a schema of many keywords and patterns. */
const mostSteps = 1_000_000

/** Limits the steps of checking one payload. */
export const payloadMeter = () => new Meter(mostSteps)

/** Returns the faults of a payload. */
export type PayloadCheck = (payload: unknown, meter: Meter) => string[]

/** Checks a schema, and returns the check of its payloads. If the schema cannot be used, each payload has that fault. */
export function payloadCheckOf(schema: PayloadSchema, meter: Meter): PayloadCheck {
  const unusable = unusableFault(schema, meter)
  if (unusable !== undefined) return () => [unusable]
  const patterns: Run['patterns'] = new Map()
  return (payload, meter) => {
    try {
      const faults: string[] = []
      evaluate({ root: schema, meter, patterns, path: [], depth: 0, faults }, schema, payload)
      return faults
    } catch (error) {
      if (!(error instanceof OutOfSteps || error instanceof TooDeep)) throw error
      return [uncheckable(error)]
    }
  }
}

function unusableFault(schema: PayloadSchema, meter: Meter): string | undefined {
  try {
    const must = schemaFault(meter, schema)
    return must && `the schema of this type cannot be used (${must}); register the type again`
  } catch (error) {
    if (error instanceof OutOfSteps) return uncheckable(error)
    throw error
  }
}

const uncheckable = ({ message }: Error) => `this payload cannot be checked against the schema of its type: ${message}`

/** The faults of a payload. An unusable schema, such as one that an older version accepted, is a fault too. */
export function faultsIn(schema: PayloadSchema, payload: unknown, meter = payloadMeter()): string[] {
  return payloadCheckOf(schema, meter)(payload, meter)
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

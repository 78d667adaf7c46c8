/** The check of one value against a schema: its steps, current place and faults so far. */

import { RE2JS } from 're2js'
import { compilePattern, type LinearPattern } from '../linear-pattern.ts'
import type { Meter } from '../meter.ts'
import type { Schema, SchemaObject } from './schema.ts'

export interface Run {
  readonly root: SchemaObject
  readonly meter: Meter
  /** Compiled patterns of this schema, by their text. */
  readonly patterns: Map<string, LinearPattern>
  /** The names and indexes that lead to the current value. */
  readonly path: (string | number)[]
  /** Nesting depth of the schemas that are being applied. */
  depth: number
  /** Undefined: only the validity matters. */
  faults: string[] | undefined
}

/**
 * Names or indexes evaluated by a schema and those applied in place, for `unevaluatedProperties` and
 * `unevaluatedItems`.
 */
export type Evaluated = Set<string | number>

/** A set lookup costs more than one step. */
export const noteSteps = 3

/** Marks a name or index as evaluated. */
export function note(run: Run, evaluated: Evaluated | undefined, key: string | number): void {
  if (evaluated === undefined) return
  run.meter.spend(noteSteps)
  evaluated.add(key)
}

/** Applies a keyword of `schema` to a value. Records a fault and returns false if the value is not valid. */
export type Keyword = (
  run: Run,
  schema: SchemaObject,
  value: unknown,
  evaluated: Evaluated | undefined,
  apply: Apply,
) => boolean

/** Applies a schema to a value. `evaluated`: collects what was evaluated, if an outer schema applies to the same value. */
export type Apply = (run: Run, schema: Schema, value: unknown, evaluated?: Evaluated) => boolean

const mostFaults = 100

/** Records a fault at the current place. Returns false: the value is not valid. */
export function refuse(run: Run, message: () => string): false {
  const { faults, path } = run
  if (faults !== undefined && faults.length < mostFaults) {
    run.meter.spend(path.length)
    faults.push(path.length === 0 ? message() : `${path.join('.')}: ${message()}`)
  }
  return false
}

/** Runs a check and discards its faults. */
export function quietly<Result>(run: Run, attempt: () => Result): Result {
  const { faults } = run
  run.faults = undefined
  const result = attempt()
  run.faults = faults
  return result
}

/** Runs a check and returns its faults separately. */
export function apart(run: Run, attempt: () => boolean): { isValid: boolean; faults: readonly string[] } {
  const { faults } = run
  const own: string[] | undefined = faults && []
  run.faults = own
  const isValid = attempt()
  run.faults = faults
  return { isValid, faults: own ?? [] }
}

export function add(run: Run, faults: readonly string[]): void {
  run.faults?.push(...faults.slice(0, Math.max(0, mostFaults - run.faults.length)))
}

/** Matches texts against a pattern of the schema, which is compiled once per run. */
export function matcherOf({ patterns, meter }: Run, pattern: string): (text: string) => boolean {
  let compiled = patterns.get(pattern)
  if (compiled === undefined) {
    compiled = compilePattern(meter, fromJavaScript(pattern))
    patterns.set(pattern, compiled)
  }
  const { matches } = compiled
  return text => matches(meter, text)
}

/** Why a pattern cannot be used. JSON Schema uses JavaScript's patterns; RE2 supports most of them. */
export function patternFault(meter: Meter, pattern: string): string | undefined {
  try {
    compilePattern(meter, fromJavaScript(pattern))
    new RegExp(pattern, 'u')
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

const fromJavaScript = (pattern: string) => RE2JS.translateRegExp(pattern)

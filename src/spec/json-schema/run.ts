/** The check of one value against a schema: its steps, the place that it has come to, and the faults that it has found. */

import type { LinearPattern } from '../linear-pattern.ts'
import type { Meter } from '../meter.ts'
import type { Schema, SchemaObject } from './schema.ts'

export interface Run {
  readonly root: SchemaObject
  readonly meter: Meter
  /** Compiled patterns of this schema, by their text. */
  readonly patterns: Map<string, LinearPattern>
  /** The names and indexes that lead to the value in question. */
  readonly path: (string | number)[]
  /** How many schemas are being applied, one inside of the other. */
  depth: number
  /** Undefined: only whether the value is valid matters. */
  faults: string[] | undefined
}

/** The names or indexes that a schema and those applied in place have looked at, for `unevaluatedProperties` and `unevaluatedItems`. */
export type Evaluated = Set<string | number>

/** A set costs more than a step for each thing that it is asked for. */
export const noteSteps = 3

/** Notes that a name or an index has been looked at. */
export function note(run: Run, evaluated: Evaluated | undefined, key: string | number): void {
  if (evaluated === undefined) return
  run.meter.spend(noteSteps)
  evaluated.add(key)
}

/** Applies a keyword of `schema` to a value. Gives false, after it has noted why, if the value is not valid. */
export type Keyword = (
  run: Run,
  schema: SchemaObject,
  value: unknown,
  evaluated: Evaluated | undefined,
  apply: Apply,
) => boolean

/** Applies a schema to a value. `evaluated` is given where the value is the same, and somebody wants to know. */
export type Apply = (run: Run, schema: Schema, value: unknown, evaluated?: Evaluated) => boolean

const mostFaults = 100

/** Notes a fault at the present place. Returns false: the value is not valid. */
export function refuse(run: Run, message: () => string): false {
  const { faults, path } = run
  if (faults !== undefined && faults.length < mostFaults) {
    run.meter.spend(path.length)
    faults.push(path.length === 0 ? message() : `${path.join('.')}: ${message()}`)
  }
  return false
}

/** Tries something without keeping its faults. */
export function quietly<Result>(run: Run, attempt: () => Result): Result {
  const { faults } = run
  run.faults = undefined
  const result = attempt()
  run.faults = faults
  return result
}

/** Tries something and gives its faults apart. */
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

/** Conditions and lists in a spec, in CEL: `stages.classify.output.kind == "invoice"`. Evaluation is bounded. */
import type { ASTNode } from '@marcbachmann/cel-js'
import { cel, evaluateMetered, wordsFor } from './cel.ts'
import { Meter } from './meter.ts'

export const longestCondition = 2000
/** Steps for the expressions of one stage: roughly a tenth of a second, and at most about 100 MB. */
export const mostSteps = 1_000_000
/** For all expressions of a job: parsing them takes a few tenths of a second. */
export const longestConditions = 300_000

/** The purpose of an expression: a condition (`when`), a list (`forEach`) or an output (`gives`). */
export type Gives = 'boolean' | 'list' | 'anything'

export interface Scope {
  readonly input: unknown
  readonly stages: Readonly<Record<string, StageResult>>
}

export interface StageResult {
  readonly state: string
  readonly output: unknown
  readonly [more: string]: unknown
}

/** Returns a description of an expression's fault, or undefined if it can be evaluated. */
export function checkCondition(text: string, gives?: Gives): string | undefined {
  if (text.length > longestCondition) return `it has more than ${longestCondition} characters`
  try {
    const parsed = cel.parse(text)
    if (stagesIn(parsed.ast).includes(undefined))
      return 'write stages.name or stages["name"]; stages cannot be iterated over'
    const { valid, type, error } = parsed.check()
    if (!valid) return wordsFor(error)
    if (gives === 'boolean' && type !== 'bool' && type !== 'dyn') return `it returns ${type}, not true or false`
    if (gives === 'list' && !/^(list\b|dyn$)/.test(type!)) return `it returns ${type}, not a list`
    return undefined
  } catch (error) {
    return wordsFor(error)
  }
}

/** The stages that an expression reads; only they are needed to evaluate it. Empty for an invalid expression. */
export function stagesNamedIn(text: string): string[] {
  if (checkCondition(text) !== undefined) return []
  const names = stagesIn(cel.parse(text).ast).filter(name => name !== undefined)
  return [...new Set(names)]
}

/** Evaluates an expression to plain JSON. Throws an Error with a short explanation if it has no value. */
export function evaluate(text: string, scope: Scope, meter = new Meter(mostSteps)): unknown {
  const fault = checkCondition(text)
  if (fault !== undefined) throw new Error(fault)
  try {
    meter.spend(text.length)
    const value = evaluateMetered(meter, text, { input: scope.input, stages: scope.stages })
    // A list that contains the same list many times becomes that many copies.
    meter.spendFor(value)
    return plainJson(value)
  } catch (error) {
    throw new Error(wordsFor(error), { cause: error })
  }
}

export function evaluateWhen(text: string, scope: Scope, meter?: Meter): boolean {
  const value = evaluate(text, scope, meter)
  if (typeof value === 'boolean') return value
  throw new Error(`it must return true or false, not ${kindOf(value)}`)
}

export function evaluateForEach(text: string, scope: Scope, meter?: Meter): unknown[] {
  const value = evaluate(text, scope, meter)
  if (Array.isArray(value)) return value
  throw new Error(`it must return a list, not ${kindOf(value)}`)
}

/** Maximum length of an output as JSON, in characters. */
export const longestValue = 1_000_000

export function evaluateGives(text: string, scope: Scope, meter?: Meter): unknown {
  const value = evaluate(text, scope, meter)
  if (JSON.stringify(value).length <= longestValue) return value
  throw new Error(`it gives more than ${longestValue.toLocaleString('en')} characters`)
}

function kindOf(value: unknown): string {
  if (value === null || Array.isArray(value)) return value === null ? 'null' : 'a list'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** The name after each `stages`; undefined where `stages` is used without a name. */
function stagesIn(node: unknown): (string | undefined)[] {
  if (Array.isArray(node)) return node.flatMap(stagesIn)
  if (!isNode(node)) return []
  if (node.op === 'id') return node.args === 'stages' ? [undefined] : []
  if (node.op === '.' && isStages(node.args[0])) return [node.args[1]]
  if (node.op === '[]' && isStages(node.args[0])) {
    const { op, args } = node.args[1]
    if (op === 'value' && typeof args === 'string') return [args]
  }
  return stagesIn(node.args)
}

function isNode(node: unknown): node is ASTNode {
  return typeof node === 'object' && node !== null && 'op' in node
}

function isStages(node: ASTNode): boolean {
  return node.op === 'id' && node.args === 'stages'
}

/** Converts a CEL value to JSON: BigInt to number, timestamp to text. */
function plainJson(value: unknown): unknown {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' || typeof value === 'bigint') return plainNumber(value)
  if (Array.isArray(value)) return value.map(plainJson)
  if (value instanceof Date) return value.toISOString()
  if (isPlain(value)) return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plainJson(inner)]))
  // An unsigned integer of CEL.
  if (typeof value === 'object' && typeof value.valueOf() === 'bigint') return plainJson(value.valueOf())
  throw new Error('it returns a value that is not JSON')
}

function plainNumber(value: number | bigint): number {
  const made = Number(value)
  if (typeof value === 'bigint' && !Number.isSafeInteger(made)) throw new Error(`the number ${value} is too large`)
  if (!Number.isFinite(made)) throw new Error('it returns a number that is not finite')
  return made
}

function isPlain(value: unknown): value is Record<string, unknown> {
  const kind = typeof value === 'object' && value !== null ? Object.getPrototypeOf(value) : undefined
  return kind === Object.prototype || kind === null
}

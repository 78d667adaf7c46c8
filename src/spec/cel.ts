/** The language of conditions: CEL with JSON numbers, bounded evaluation and readable errors. */
import { type ASTNode, Environment } from '@marcbachmann/cel-js'
import { closestWord } from '../kernel/suggest.ts'
import { compilePattern } from './linear-pattern.ts'
import { Meter, OutOfSteps } from './meter.ts'

const variables = ['input', 'stages'] as const

/** The library's evaluator. It is not exported, but handlers of operators receive it. */
interface Evaluator {
  run(node: Node, scope: unknown): unknown
  tryEval(node: Node, scope: unknown): unknown
}

type Node = ASTNode & {
  readonly meta: { readonly alternate?: unknown; readonly macro?: unknown }
  evaluate(evaluator: Evaluator, node: Node, scope: unknown): unknown
}

export const cel = new Environment({ homogeneousAggregateLiterals: false })
for (const name of variables) cel.registerVariable(name, 'dyn')

let evaluator: Evaluator | undefined

// CEL treats JSON numbers as doubles and would refuse to add the integer 1 to one.
const arithmetic: Record<string, (one: number, other: number) => number> = {
  '+': (one, other) => one + other,
  '-': (one, other) => one - other,
  '*': (one, other) => one * other,
  '/': (one, other) => one / other,
  '%': (one, other) => one % other,
}
for (const [sign, compute] of Object.entries(arithmetic)) {
  const mixed = (one: number | bigint, other: number | bigint, _node?: Node, running?: Evaluator) => {
    evaluator ??= running
    return compute(Number(one), Number(other))
  }
  cel.registerOperator(`double ${sign} int: double`, mixed)
  cel.registerOperator(`int ${sign} double: double`, mixed)
}
cel.registerOperator('double % double: double', arithmetic['%']!)
cel.evaluate('1 + 1.0')
if (evaluator === undefined) throw new Error('This version of @marcbachmann/cel-js cannot be metered.')
meterSteps(evaluator)

let meter = new Meter(0)

/** The value of an expression. Throws `OutOfSteps` if it takes more than the meter has left. */
export function evaluateMetered(mine: Meter, text: string, scope: Record<string, unknown>): unknown {
  const parsed = cel.parse(text)
  const root = parsed.ast as Node
  const { evaluate } = root
  // The library evaluates the first node itself. This sends it through `run`, like all others.
  root.evaluate = (running, node, inner) => {
    root.evaluate = evaluate
    return running.run(node, inner)
  }
  const before = meter
  meter = mine
  try {
    return parsed(scope)
  } finally {
    meter = before
  }
}

/** Operators that read all of their operands outside `run`. */
const readsOperands = new Set(['==', '!=', 'in', '+', '<', '<=', '>', '>=', 'call', 'rcall'])
/**
 * Functions whose work or result grows with the product of their operands' sizes, and the amount of work per step.
 * Finding one text in another may compare every character of one with every character of the other.
 */
const products = new Map(Object.entries({ contains: 64, indexOf: 64, lastIndexOf: 64, split: 64, join: 16 }))
/** Getting a part of a date in a time zone takes about 50 microseconds. */
const dateInZoneSteps = 500
/** The library's errors show their place in the expression, which takes about 15 microseconds. */
const errorSteps = 150
/** Before each call, the library looks up the overload that fits the operand types. */
const callSteps = 10

interface Frame {
  readonly node: Node
  /** The product of the sizes of the operands so far; undefined before the first. */
  product?: number
}

/**
 * Counts steps in the evaluator's `run`, which evaluates every node. The extra cost of an operation follows from its
 * operands. It is spent as soon as the last operand is known, before the operation begins.
 */
function meterSteps(running: Evaluator): void {
  let parent: Frame | undefined
  running.run = (node, scope) => {
    meter.spend(1)
    const outer = parent
    parent = { node }
    let value: unknown
    try {
      value = ownFunction(running, node, scope) ?? node.evaluate(running, node, scope)
    } finally {
      parent = outer
    }
    if (outer !== undefined) spendForOperand(outer, value)
    return value
  }
  running.tryEval = (node, scope) => {
    try {
      return running.run(node, scope)
    } catch (error) {
      // CEL ignores an error in one operand of `&&` or `||` if the other decides. This error ends the evaluation.
      if (error instanceof OutOfSteps) throw error
      meter.spend(errorSteps)
      return error
    }
  }
}

function spendForOperand(frame: Frame, value: unknown): void {
  const { node } = frame
  if (node.meta.alternate !== undefined || node.meta.macro !== undefined) {
    // A macro such as `all`. Its iterations are counted by themselves; an object's keys are listed before the first one.
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) meter.spendFor(Object.keys(value))
    return
  }
  if (!readsOperands.has(node.op)) return
  // The size of a list is known without reading it. The size of a text is not.
  const isMeasured = (node.op === 'call' || node.op === 'rcall') && node.args[0] === 'size'
  meter.spendFor(isMeasured && typeof value === 'object' ? null : value)
  if (node.op === 'call' || node.op === 'rcall') meter.spend(callSteps)
  if (node.op !== 'rcall') return
  const name = node.args[0]
  const perStep = products.get(name)
  if (perStep !== undefined && (typeof value === 'string' || Array.isArray(value))) {
    if (frame.product !== undefined) meter.spend((frame.product * value.length) / perStep)
    frame.product = (frame.product ?? 1) * value.length
    // Each character may become a separate text.
    if (name === 'split') meter.spend(value.length)
  }
  if (name.startsWith('get') && typeof value === 'string') meter.spend(dateInZoneSteps)
}

/**
 * Bounded replacements for library functions that can take very long. Undefined: it is another function, or its operands
 * have types that the library refuses.
 */
function ownFunction(running: Evaluator, node: Node, scope: unknown): unknown {
  if (node.op === 'rcall' && node.args[0] === 'matches' && node.args[2].length === 1) {
    const text = running.run(node.args[1] as Node, scope)
    const pattern = running.run(node.args[2][0] as Node, scope)
    return typeof text === 'string' && typeof pattern === 'string'
      ? compilePattern(meter, pattern).matches(meter, text)
      : undefined
  }
  if (node.op === 'call' && node.args[0] === 'duration' && node.args[1].length === 1) {
    const text = running.run(node.args[1][0] as Node, scope)
    if (typeof text === 'string' && text.length > 100) throw new Error('a duration has at most 100 characters')
  }
  return undefined
}

interface CelError {
  readonly message: string
  readonly code?: string
  readonly summary?: string
  readonly range?: { readonly start: number }
}

/** A short description of an error, with its place. */
export function wordsFor(error: unknown): string {
  const { code = '', message, summary = message, range } = error as CelError
  const [, subject = ''] = /: (.*)/.exec(summary) ?? []
  const words: Record<string, string> = {
    no_such_key: `there is no field '${subject}'`,
    no_such_overload: `${subject.replace(/\bdyn<([^<>]+)>/g, '$1')} is not possible`,
    unknown_variable: `there is no '${subject}'${meant(subject)}`,
  }
  const place = range === undefined ? '' : `, at character ${range.start + 1}`
  return `${words[code] ?? summary}${place}`
}

function meant(word: string): string {
  const near = closestWord(word.slice(0, 50), variables)
  return near === undefined ? ' (only input and stages)' : ` (did you mean '${near}'?)`
}

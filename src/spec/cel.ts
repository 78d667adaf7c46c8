/** The language of conditions: CEL, with the numbers of JSON, in bounded work, and with errors for people. */
import { type ASTNode, Environment } from '@marcbachmann/cel-js'
import { RE2JS } from 're2js'
import { nearest } from '../kernel/suggest.ts'
import { Meter, OutOfSteps } from './meter.ts'

const variables = ['input', 'stages'] as const

/** What the library evaluates nodes with. It is not exported, but handlers of operators get it. */
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

// Numbers of JSON are doubles to CEL, and it would not add 1 to one of them.
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
  // The library evaluates the first node itself. This takes it to `run`, like all others.
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

/** What goes through its operands from one end to the other, other than by evaluating nodes. */
const readsOperands = new Set(['==', '!=', 'in', '+', '<', '<=', '>', '>=', 'call', 'rcall'])
/** Looking for one text in another may compare each character of one with each of the other. */
const searches = new Set(['contains', 'indexOf', 'lastIndexOf', 'split'])
/** Asking for a part of a date in a time zone takes some 50 microseconds. */
const dateInZoneSteps = 500

interface Frame {
  readonly node: Node
  /** The product of the lengths of the texts among the operands so far. */
  searched: number
}

/**
 * Counts in the evaluator's `run`, which evaluates every node. What an operation costs beyond its own step is known from
 * its operands, and is spent when the last of them is known, before the operation begins.
 */
function meterSteps(running: Evaluator): void {
  let parent: Frame | undefined
  running.run = (node, scope) => {
    meter.spend(1)
    const outer = parent
    parent = { node, searched: 1 }
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
      // CEL forgives an error where the other side decides. This one ends the evaluation.
      if (error instanceof OutOfSteps) throw error
      return error
    }
  }
}

function spendForOperand(frame: Frame, value: unknown): void {
  const { node } = frame
  if (node.meta.alternate !== undefined || node.meta.macro !== undefined) {
    // A macro such as `all`. Its rounds count by themselves; the keys of an object are listed before the first one.
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) meter.spendFor(Object.keys(value))
    return
  }
  if (!readsOperands.has(node.op)) return
  meter.spendFor(value)
  if (node.op !== 'rcall') return
  const name = node.args[0]
  if (searches.has(name) && typeof value === 'string') {
    if (frame.searched > 1) meter.spend((frame.searched * value.length) / 64)
    frame.searched *= value.length
  }
  if (name.startsWith('get') && typeof value === 'string') meter.spend(dateInZoneSteps)
}

/**
 * Functions of the library that can take very long, in a form that cannot. Undefined: it is none of them, or its
 * operands are of other types, which the library refuses.
 */
function ownFunction(running: Evaluator, node: Node, scope: unknown): unknown {
  if (node.op === 'rcall' && node.args[0] === 'matches' && node.args[2].length === 1) {
    const text = running.run(node.args[1] as Node, scope)
    const pattern = running.run(node.args[2][0] as Node, scope)
    return typeof text === 'string' && typeof pattern === 'string' ? matches(text, pattern) : undefined
  }
  if (node.op === 'call' && node.args[0] === 'duration' && node.args[1].length === 1) {
    const text = running.run(node.args[1][0] as Node, scope)
    if (typeof text === 'string' && text.length > 100) throw new Error('a duration has at most 100 characters')
  }
  return undefined
}

const longestPattern = 1000

/** In time linear to the text: a pattern has no backreferences and does not look around. */
function matches(text: string, pattern: string): boolean {
  if (pattern.length > longestPattern) throw new Error(`a pattern has at most ${longestPattern} characters`)
  const { program } = compile(pattern)
  meter.spend(program.programSize() * (1 + text.length / 8))
  return program.test(text)
}

/** A pattern is mostly used for one element of a list after the other. */
let latest: { readonly pattern: string; readonly program: RE2JS } | undefined

function compile(pattern: string) {
  if (latest?.pattern === pattern) return latest
  try {
    latest = { pattern, program: RE2JS.compile(pattern) }
    meter.spend(100 + 10 * latest.program.programSize())
    return latest
  } catch (error) {
    if (error instanceof OutOfSteps) throw error
    throw new Error(`the pattern ${JSON.stringify(pattern)} is not one of RE2 (${(error as Error).message})`)
  }
}

interface CelError {
  readonly message: string
  readonly code?: string
  readonly summary?: string
  readonly range?: { readonly start: number }
}

/** What went wrong, in a few words and with its place. */
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
  const near = nearest(word.slice(0, 50), variables)
  return near === undefined ? ' (only input and stages)' : ` (did you mean '${near}'?)`
}

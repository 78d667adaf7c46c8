/** The language of conditions: CEL, with the numbers of JSON, in bounded time, and with errors for people. */
import { createContext, Script } from 'node:vm'
import { Environment } from '@marcbachmann/cel-js'
import { nearest } from '../kernel/suggest.ts'

const variables = ['input', 'stages'] as const
const mostMs = 1000

export const cel = new Environment({ homogeneousAggregateLiterals: false })
for (const name of variables) cel.registerVariable(name, 'dyn')

// Numbers of JSON are doubles to CEL, and it would not add 1 to one of them.
const arithmetic: Record<string, (one: number, other: number) => number> = {
  '+': (one, other) => one + other,
  '-': (one, other) => one - other,
  '*': (one, other) => one * other,
  '/': (one, other) => one / other,
  '%': (one, other) => one % other,
}
for (const [sign, compute] of Object.entries(arithmetic)) {
  const mixed = (one: number | bigint, other: number | bigint) => compute(Number(one), Number(other))
  cel.registerOperator(`double ${sign} int: double`, mixed)
  cel.registerOperator(`int ${sign} double: double`, mixed)
}
cel.registerOperator('double % double: double', arithmetic['%']!)

const room = createContext({ work: undefined })
const doTheWork = new Script('work()')

/**
 * Does it, and gives up after a second: loops in loops over long lists, or a regular expression, can take hours.
 * Only what runs through a context of its own can be stopped.
 */
export function inTime<Value>(work: () => Value): Value {
  room.work = work
  try {
    return doTheWork.runInContext(room, { timeout: mostMs })
  } finally {
    room.work = undefined
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
  if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return `it takes longer than ${mostMs} ms`
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

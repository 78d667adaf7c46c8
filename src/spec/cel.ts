/** The language of conditions: CEL, with the numbers of JSON, in bounded time, and with errors for people. */
import { readFileSync } from 'node:fs'
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
 * Runs `work` and stops it once it has used a second of processor time: nested loops over long lists, or a regular
 * expression, can take hours. Only a script in a context of its own can be stopped, and only by the clock. So when the
 * clock stops work that has used less than its second, because the process was paused or the machine is busy, the work
 * is repeated with twice the time. It must therefore be free of side effects.
 */
export function withinProcessorSecond<Value>(work: () => Value): Value {
  room.work = work
  try {
    for (let timeout = mostMs; ; timeout *= 2) {
      const before = processorMs()
      try {
        return doTheWork.runInContext(room, { timeout })
      } catch (error) {
        const isStopped = (error as CelError).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
        if (!isStopped || processorMs() - before >= mostMs * 0.9) throw error
      }
    }
  } finally {
    room.work = undefined
  }
}

/** Processor time of this thread in milliseconds; where the system does not tell, that of all threads together. */
function processorMs(): number {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1e6
  } catch {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
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
  if (code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return `it takes more than ${mostMs} ms of processor time`
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

/** Logs failed attempts: one line that a person can read, and the stack at the level debug. */
import { relative, sep } from 'node:path'
import type { TaskError } from '../kernel/decide.ts'
import { errorText } from '../kernel/error-lines.ts'
import { maskKeys, sanitize, sanitizeLines } from '../kernel/sanitize.ts'
import { pathOf, usersFrame } from '../kernel/stack.ts'
import type { FailedAttempt } from '../protocol/tasks/sync.ts'
import { type Attempt, traceOf } from './attempt.ts'
import type { WorkerSettings } from './options.ts'
import { isOwnFile } from './source-maps.ts'

type Log = WorkerSettings['log']

/** `after`: what the engine decided; undefined: it is not known, because the answer was lost. */
export function logFailure(
  one: Attempt,
  after: FailedAttempt | undefined,
  { name: worker, log }: WorkerSettings,
): void {
  const { task, settled } = one
  const { outcome, error } = settled!
  if (error === undefined || (outcome !== 'failed' && outcome !== 'dead_lettered')) return
  const { id, type, attempt } = task
  const { attempts, state, retryInSeconds } = after ?? {}
  const at = placeOf(error)
  const known = {
    ...(attempts !== undefined && { attempts }),
    ...(state !== undefined && { next: state }),
    ...(retryInSeconds != null && { retryInSeconds: Math.round(retryInSeconds * 10) / 10 }),
    ...(at !== undefined && { at }),
  }
  const trace = { ...traceOf(one), worker }
  log('task.failed', { level: 'warn', type, id, attempt, message: error.message, ...known, ...trace })
  log('task.stack', { level: 'debug', type, id, attempt, stack: errorText(error), ...trace })
}

/** The place in the user's own code, of the error or else of its cause: `handlers.ts:12:9`. */
function placeOf({ stack = '', cause }: Pick<TaskError, 'stack' | 'cause'>): string | undefined {
  const frame = usersFrame(stack, isOwnFile)
  if (frame === undefined) return cause === undefined ? undefined : placeOf(cause)
  const path = pathOf(frame.file)
  const short = relative(process.cwd(), path)
  return `${short.startsWith(`..${sep}`) ? path : short}:${frame.line}:${frame.column}`
}

/**
 * The default log of a worker: failed attempts, on standard error. `PAWL_LOG_LEVEL=debug` adds their stacks, and
 * `PAWL_LOG_LEVEL=error` silences them.
 */
export const printFailures: Log = (event, facts) => {
  const level = process.env.PAWL_LOG_LEVEL
  if (level === 'error') return
  if (event === 'task.failed') print(sanitize(readable(facts)))
  if (event === 'task.stack' && level === 'debug') print(sanitizeLines(`${facts.stack}`).replace(/^/gm, '    '))
}

let printing = 0
const ignore = () => {}

/**
 * Prints a line, or nothing if standard error was closed. Without a listener, its `error` event would end the process,
 * which may be a program of the user. Errors of other writes remain theirs.
 */
function print(text: string): void {
  try {
    if (++printing === 1) process.stderr.on('error', ignore)
    // The event follows the callback.
    process.stderr.write(`${maskKeys(text)}\n`, () => setImmediate(printed))
  } catch {
    printed()
  }
}

function printed(): void {
  if (--printing === 0) process.stderr.off('error', ignore)
}

function readable({ type, id, attempt, attempts, message, next, retryInSeconds, at }: Record<string, unknown>): string {
  const count = attempts === undefined ? `${attempt}` : `${attempt} of ${attempts}`
  const place = at === undefined ? '' : ` (${at})`
  const text = `${message}`.slice(0, longestMessage)
  return `pawl: ${type} ${id} failed, attempt ${count}: ${text}${place}${outlook(next, retryInSeconds)}`
}

const longestMessage = 500

function outlook(next: unknown, retryInSeconds: unknown): string {
  if (next === undefined) return ''
  if (next !== 'retrying') return `; now ${`${next}`.replace('_', ' ')}`
  return retryInSeconds === 0 ? '; next attempt at once' : `; next attempt in ${retryInSeconds} s`
}

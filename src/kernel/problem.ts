import { type ProblemCode, problems } from './problems.ts'

export { type ProblemCode, problems } from './problems.ts'

/**
 * An error that a caller may want to act on. `code` is stable; the message says what is wrong and what to do.
 *
 * @example
 * try {
 *   await engine.cancel(id)
 * } catch (error) {
 *   if (!(error instanceof Problem && error.code === 'MOVE_REFUSED')) throw error
 * }
 */
export class Problem extends Error {
  override readonly name = 'Problem'
  readonly code: ProblemCode
  readonly details: Readonly<Record<string, unknown>>
  /** The first sentence of the message: what is wrong. */
  readonly summary: string

  constructor(code: ProblemCode, details: Record<string, unknown> = {}, cause?: unknown) {
    const shortened = truncateStrings(details) as Record<string, unknown>
    const summary = summarize(code, shortened)
    super(`${summary}${formatDetails(shortened)} ${problems[code].hint}`, { cause })
    this.code = code
    this.details = shortened
    this.summary = summary
  }

  get status(): number {
    return problems[this.code].status
  }
}

/** An item of a batch that was refused, and why. */
export interface Refused {
  readonly id: string
  readonly code: string
  readonly message: string
}

const transient: readonly ProblemCode[] = [
  'STORE_UNAVAILABLE',
  'STORE_BUSY',
  'STORE_FULL',
  'STORE_READ_ONLY',
  'STORE_CROWDED',
  'STORE_REFUSED',
  'SERVER_UNREACHABLE',
  'SERVER_CLOSING',
  'SERVER_BLOCKED',
  'SPECS_WAIT',
  'STREAMS_FULL',
  'SUBMIT_CUT_OFF',
  'KUBERNETES_UNREACHABLE',
  'REQUEST_SLOW',
  'TASK_BUSY',
  'FILES_UNAVAILABLE',
]

/** Problems that last until somebody fixes the environment. The same task can succeed afterwards. */
const fixable: readonly ProblemCode[] = ['FILES_DENIED', 'DISK_FULL']

/** Whether the problem goes away without anybody's help, so that the same request may succeed a little later. */
export function isTransient(error: unknown): boolean {
  return error instanceof Problem && transient.includes(error.code)
}

/** Whether a task that failed with this problem is retried. The next attempt would meet any other problem again. */
export function isWorthRetry(error: unknown): boolean {
  return isTransient(error) || (error instanceof Problem && fixable.includes(error.code))
}

/** For `catch`: ignores a problem with this code and rethrows every other error. */
export function ignoring(code: ProblemCode): (error: unknown) => void {
  return error => {
    if (!(error instanceof Problem && error.code === code)) throw error
  }
}

function summarize(code: ProblemCode, { state, move, job, stage }: Record<string, unknown>): string {
  if (code !== 'MOVE_REFUSED' || typeof state !== 'string' || typeof move !== 'string') return problems[code].means
  const entity = stage !== undefined ? 'stage' : job !== undefined ? 'job' : 'task'
  const article = /^[aeiou]/.test(state) ? 'an' : 'a'
  return `Cannot ${verbs[move] ?? wordsOf(move)} ${article} ${wordsOf(state)} ${entity}.`
}

/** Requests and moves whose names are no verbs for people. */
const verbs: Readonly<Record<string, string>> = {
  passOver: 'skip',
  revive: 'resume or retry',
  stages: 'add stages to',
  submit: 'start',
  tasks: 'add tasks to',
}

/** `dead_lettered` becomes `dead-lettered`. */
const wordsOf = (name: string) => name.replace(/_|(?=[A-Z])/g, '-').toLowerCase()

/** The message repeats the details because a log often keeps nothing else. */
function formatDetails(details: Record<string, unknown>): string {
  const parts = Object.entries(details).map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
  return parts.length === 0 ? '' : ` (${parts.join(', ')})`
}

const maxLength = 1000
const maxDepth = 8

/** Details quote the request: enough to find the place, however much was sent. */
function truncateStrings(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') {
    return value.length <= maxLength ? value : `${value.slice(0, maxLength).toWellFormed()}…`
  }
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  if (depth === maxDepth) return '…'
  if (Array.isArray(value)) return value.map(item => truncateStrings(item, depth + 1))
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, truncateStrings(inner, depth + 1)]))
}

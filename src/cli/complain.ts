/** What went wrong, in words for people, and the exit code that scripts go by. */
import { maskKeys } from '../kernel/mask-keys.ts'
import { Problem, type ProblemCode, problems } from '../kernel/problem.ts'
import { type Line, styled } from './line.ts'

export const exitCodes = { good: 0, bad: 1, usage: 2, unreachable: 3 } as const

const unreachable: readonly ProblemCode[] = ['STORE_LOCKED']

export function exitCodeOf(error: unknown): number {
  if (!(error instanceof Problem)) return exitCodes.bad
  const { status, code } = error
  // Whoever waits for a job must be able to tell that it ended badly from not having been let in.
  if (status === 503 || status === 401 || status === 403 || unreachable.includes(code)) return exitCodes.unreachable
  return status === 400 || status === 422 ? exitCodes.usage : exitCodes.bad
}

/** Keys and passwords are hidden: what a command prints often ends up in a log. */
export function complaint(error: unknown): Line[] {
  if (!(error instanceof Problem)) return bug(error).map(line => ['', maskKeys(line)])
  const [first = '', ...rest] = wordsOf(error).map(maskKeys)
  return [[styled('red', 'pawl: '), first], ...rest.map(line => `  ${line}`)]
}

function bug(error: unknown): string[] {
  const { stack, message } = error as Error
  return ['pawl: this is a bug, or a fault of the machine:', ...(stack ?? message ?? String(error)).split('\n')]
}

/** What else can be done where there is a command line. */
const hintsHere: Partial<Record<ProblemCode, readonly string[]>> = {
  SERVER_UNREACHABLE: ['Without a server, --database or --data looks straight into a store.'],
  STORE_LOCKED: ['If that is `pawl up`, ask it: leave out --data, and say --server if it is not at its usual address.'],
}

function wordsOf({ code, details, summary }: Problem): string[] {
  const { means, hint } = problems[code]
  const { at, option, didYouMean, must, why, file, issues, more, ...rest } = details as Record<string, string>
  if (code === 'COMMAND_INVALID') return [why!]
  if (code === 'FILE_INVALID') return [`${file}: ${why}`]
  if (code === 'OPTION_UNKNOWN') {
    return [`${at}: there is no option "${option}".${didYouMean === undefined ? '' : ` Did you mean "${didYouMean}"?`}`]
  }
  // A flag and a variable name the option already.
  if (code === 'OPTION_INVALID') return [`${/^--|^[A-Z_]+$/.test(at!) ? at : `${at}: ${option}`} must ${must}.`]
  if (code === 'SPEC_INVALID') {
    const told = (issues as unknown as { at: string; why: string }[]).map(issue => `${issue.at}: ${issue.why}`)
    return [`${means} Nothing was submitted.`, ...told, ...(more === undefined ? [] : [`and ${more} more`])]
  }
  const facts = Object.entries({
    ...rest,
    ...(at && { at }),
    ...(option && { option }),
    ...(must && { must }),
    ...(why && { why }),
  })
  const said = facts.map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return [`${summary}${said.length === 0 ? '' : ` (${said.join(', ')})`}`, hint, ...(hintsHere[code] ?? [])]
}

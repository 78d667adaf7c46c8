/** Error messages for people, and exit codes for scripts. */
import { Problem, type ProblemCode, problems } from '../kernel/problem.ts'
import { maskKeys } from '../kernel/sanitize.ts'
import { nextCommands } from './next-commands.ts'
import { type Line, styled } from './styled-line.ts'

export const exitCodes = { good: 0, bad: 1, usage: 2, unreachable: 3 } as const

const unreachable: readonly ProblemCode[] = ['STORE_LOCKED']

export function exitCodeOf(error: unknown): number {
  if (!(error instanceof Problem)) return exitCodes.bad
  const { status, code } = error
  // A script that waits for a job must be able to tell a failed job (1) from a refused connection or key (3).
  if (status === 503 || status === 401 || status === 403 || unreachable.includes(code)) return exitCodes.unreachable
  return status === 400 || status === 422 ? exitCodes.usage : exitCodes.bad
}

/** The message for an error. Keys and passwords are masked, because the output of commands often ends up in logs. */
export function errorMessage(error: unknown): Line[] {
  if (!(error instanceof Problem)) return unexpectedError(error).map(line => ['', maskKeys(line)])
  const [first = '', ...rest] = problemLines(error).map(maskKeys)
  return [[styled('red', 'pawl: '), first], ...rest.map(line => `  ${line}`)]
}

function unexpectedError(error: unknown): string[] {
  const { stack, message } = error as Error
  return [
    'pawl: Unexpected error: a bug in Pawl, or a fault of this machine:',
    ...(stack ?? message ?? String(error)).split('\n'),
  ]
}

/** Hints that apply only on the command line. */
const commandLineHints: Partial<Record<ProblemCode, readonly string[]>> = {
  SERVER_UNREACHABLE: ['To open a store without a server, use --database or --data.'],
  STORE_LOCKED: ['If `pawl up` has opened it, leave out --data to connect to that server, or name it with --server.'],
}

function problemLines(problem: Problem): string[] {
  const { code, details, summary } = problem
  const { means, hint } = problems[code]
  const { at, option, didYouMean, must, why, file, issues, more, ...rest } = details as Record<string, string>
  if (code === 'COMMAND_INVALID') return [why!]
  // Parsers name the place in a second line.
  if (code === 'FILE_INVALID') return `${file}: ${why}`.split('\n').map(line => line.trim())
  if (code === 'OPTION_UNKNOWN') {
    return [`${at}: unknown option "${option}".${didYouMean === undefined ? '' : ` Did you mean "${didYouMean}"?`}`]
  }
  // The name of a flag or variable already names the option.
  if (code === 'OPTION_INVALID') return [`${/^--|^[A-Z_]+$/.test(at!) ? at : `${at}: ${option}`} must ${must}.`]
  if (code === 'MOVE_REFUSED') return refusalLines(problem)
  if (code === 'SPEC_INVALID') {
    const lines = (issues as unknown as { at: string; why: string }[]).map(issue => `${issue.at}: ${issue.why}`)
    return [`${means} Nothing was submitted.`, ...lines, ...(more === undefined ? [] : [`and ${more} more`])]
  }
  if (code === 'PAYLOAD_REFUSED') {
    const lines = (issues as unknown as readonly string[]).map(issue => `${at}: ${issue}`)
    return [`${means} (type: ${rest.type})`, ...lines]
  }
  const facts = Object.entries({
    ...rest,
    ...(at && { at }),
    ...(option && { option }),
    ...(must && { must }),
    ...(why && { why }),
  }).map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
  return [`${summary}${facts.length === 0 ? '' : ` (${facts.join(', ')})`}`, hint, ...(commandLineHints[code] ?? [])]
}

/** Names the commands that are possible instead: the moves of the lifecycle mean nothing to someone who types. */
function refusalLines({ details, summary }: Problem): string[] {
  const { why } = details as Record<string, string>
  const commands = nextCommands(details)
  const hint = commands.length === 1 ? ['Possible now:'] : ['Possible now, one of:']
  return [
    `${summary}${why === undefined ? '' : ` (${why})`}`,
    ...(commands.length === 0 ? [] : [...hint, ...commands.map(command => `  ${command}`)]),
  ]
}

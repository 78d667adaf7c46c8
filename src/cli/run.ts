/** Runs a command line, and prints help. */
import { readConfigFile } from '../config/config-file.ts'
import { resolveSettings } from '../config/resolve-settings.ts'
import { Problem } from '../kernel/problem.ts'
import { maskKeys, sanitizeJson } from '../kernel/sanitize.ts'
import { closestWord } from '../kernel/suggest.ts'
import type { Command } from './command.ts'
import { errorMessage, exitCodeOf, exitCodes } from './error-message.ts'
import { helpOf, overview } from './help.ts'
import { findCommand, invalidCommand, readArguments } from './parse.ts'
import type { Line } from './styled-line.ts'
import { type OutputStreams, openTerminalOutput, type TerminalOutput } from './terminal-output.ts'
import { readVersion } from './version.ts'

/** The process around the CLI, passed in so that tests can run commands in their own process. */
export interface CliEnvironment extends OutputStreams {
  readonly folder: string
  stopSignal(): AbortSignal
}

/** Runs a command line and returns the exit code. */
export async function run(
  commands: readonly Command[],
  argv: readonly string[],
  environment: CliEnvironment,
): Promise<number> {
  const output = openTerminalOutput(environment)
  const json = argv.includes('--json')
  try {
    return await runCommand(commands, argv, environment, output)
  } catch (error) {
    if (json) output.printNotice(errorJson(error))
    else for (const line of errorMessage(error)) output.printNotice(line)
    return exitCodeOf(error)
  }
}

async function runCommand(
  commands: readonly Command[],
  argv: readonly string[],
  { env, folder, stopSignal }: CliEnvironment,
  output: TerminalOutput,
): Promise<number> {
  if (['--version', '-v', 'version'].includes(argv[0] ?? '')) {
    output.print(readVersion())
    return exitCodes.good
  }
  const asksForHelp = argv[0] === 'help' || argv.includes('--help') || argv.includes('-h')
  const found = findCommand(commands, argv[0] === 'help' ? argv.slice(1) : argv)
  if (found === undefined || asksForHelp) {
    for (const line of findHelp(commands, argv, found?.command)) output.print(line)
    return asksForHelp ? exitCodes.good : exitCodes.usage
  }
  const { command, rest } = found
  const { args, flags, settings, json, config } = readArguments(command, rest)
  const file = await readConfigFile(folder, config ?? (env.PAWL_CONFIG || undefined), command)
  const resolved = resolveSettings({ flags: settings, env, file })
  const {
    data,
    show,
    code = exitCodes.good,
  } = await command.run({ args, flags, resolved, json, output, env, stopSignal })
  if (json) {
    if (data !== undefined) output.printJson(data)
  } else for (const line of show?.(output) ?? []) output.print(line)
  return code
}

/** Throws if there is no such command, unless no command was typed at all. */
function findHelp(commands: readonly Command[], argv: readonly string[], command: Command | undefined): Line[] {
  const [first, ...others] = argv.filter(word => !word.startsWith('-'))
  const words = first === undefined ? [] : first === 'help' ? others : [first, ...others]
  const group = commands.filter(({ name }) => words.length === 0 || name.startsWith(`${words.join(' ')} `))
  const asksForHelp = argv.some(word => ['help', '--help', '-h'].includes(word))
  // `pawl worker --help` also names `pawl worker list`.
  if (command !== undefined) return [...helpOf(command), ...alsoLines(group)]
  if (words.length > 0 && !(asksForHelp && group.length > 0)) throw invalidCommand(unknownCommand(commands, words))
  return overview(group)
}

function alsoLines(group: readonly Command[]): Line[] {
  return group.length === 0 ? [] : ['', `See also: ${group.map(({ name }) => `pawl ${name}`).join(', ')}`]
}

function errorJson(error: unknown): string {
  const { code, details } = error instanceof Problem ? error : { code: 'BUG', details: {} }
  return maskKeys(sanitizeJson({ code, message: (error as Error).message, details }))
}

/** The message for an unknown command: the commands that begin with its first word, or the closest one. */
function unknownCommand(all: readonly Command[], words: readonly string[]): string {
  const commands = all.filter(({ hidden }) => hidden !== true)
  const typed = words.join(' ')
  const family = commands.filter(({ name }) => name.startsWith(`${words[0]} `))
  if (family.length > 0) {
    const [first = '', second] = words
    const known = family.map(({ name }) => name.slice(first.length + 1))
    const near = second === undefined ? undefined : closestWord(second, known)
    const suggestion = near === undefined ? '' : ` Did you mean "pawl ${first} ${near}"?`
    const problem =
      second === undefined ? `pawl ${first} requires a subcommand.` : `There is no command "pawl ${first} ${second}".`
    return `${problem}${suggestion} Commands: ${known.map(name => `pawl ${first} ${name}`).join(', ')}.`
  }
  const near = closestWord(words[0] ?? '', [
    'help',
    'version',
    ...new Set(commands.map(({ name }) => name.split(' ')[0]!)),
  ])
  const suggestion = near === undefined ? '' : ` Did you mean "pawl ${near}"?`
  return `There is no command "pawl ${typed}".${suggestion} Run pawl --help for a list of commands.`
}

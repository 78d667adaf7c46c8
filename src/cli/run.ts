/** Runs a command line, and prints help. Help texts are generated from the table of commands. */
import { readConfigFile } from '../config/config-file.ts'
import { resolveSettings } from '../config/resolve-settings.ts'
import { Problem } from '../kernel/problem.ts'
import { maskKeys, sanitizeJson } from '../kernel/sanitize.ts'
import { closestWord } from '../kernel/suggest.ts'
import { type Command, flagsOf } from './command.ts'
import { errorMessage, exitCodeOf, exitCodes } from './error-message.ts'
import { findCommand, invalidCommand, readArguments } from './parse.ts'
import { type OutputStreams, openTerminalOutput, type TerminalOutput } from './terminal-output.ts'

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
  { stdout, env, folder, stopSignal }: CliEnvironment,
  output: TerminalOutput,
): Promise<number> {
  const found = findCommand(commands, argv)
  if (found === undefined) {
    const words = argv.filter(word => !word.startsWith('-'))
    const asksForHelp = argv.includes('--help') || argv.includes('-h')
    const group = commands.filter(({ name }) => words.length === 0 || name.startsWith(`${words.join(' ')} `))
    if (words.length > 0 && !(asksForHelp && group.length > 0)) throw invalidCommand(unknownCommand(commands, words))
    stdout.write(overview(group))
    return asksForHelp ? exitCodes.good : exitCodes.usage
  }
  const { command, rest } = found
  if (rest.includes('--help') || rest.includes('-h')) {
    stdout.write(helpOf(command))
    return exitCodes.good
  }
  const { args, flags, settings, json, config } = readArguments(command, rest)
  const file = await readConfigFile(folder, config ?? (env.PAWL_CONFIG || undefined))
  const resolved = resolveSettings({ flags: settings, env, file })
  const { data, show, code = exitCodes.good } = await command.run({ args, flags, resolved, json, output, stopSignal })
  if (json) {
    if (data !== undefined) output.printJson(data)
  } else for (const line of show?.(output) ?? []) output.print(line)
  return code
}

function errorJson(error: unknown): string {
  const { code, details } = error instanceof Problem ? error : { code: 'BUG', details: {} }
  return maskKeys(sanitizeJson({ code, message: (error as Error).message, details }))
}

const exitCodeHelp = `Exit codes: 0 success · 1 the job failed or the request was refused · 2 invalid command ·
3 the server or store is unreachable, or the key was rejected`

function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(command => usage(command).length))
  const shownWidth = Math.min(width, 34)
  const rows = commands.map(command => `  ${usage(command).padEnd(shownWidth)}  ${command.summary}`)
  return `pawl: a durable job engine\n\n${rows.join('\n')}\n\nRun 'pawl COMMAND --help' for details.\n\n${exitCodeHelp}\n`
}

function helpOf(command: Command): string {
  const parameters = Object.entries(command.parameters).map(([name, summary]) => [placeholder(name), summary] as const)
  const flags = Object.entries(flagsOf(command)).map(([name, { short, value, kind, summary, words }]) => {
    const shown = `${short ? `-${short}, ` : ''}--${name}${kind === 'switch' ? '' : ` ${value ?? 'VALUE'}`}`
    return [shown, words === undefined ? summary : `${summary}: ${words.join(', ')}`] as const
  })
  const width = Math.min(34, Math.max(...[...parameters, ...flags].map(([left]) => left.length)))
  const rows = (list: readonly (readonly [string, string])[]) =>
    list.map(([left, summary]) => `  ${left.padEnd(width)}  ${summary}`).join('\n')
  return `${[
    `pawl ${usage(command)} [flags]\n\n${command.summary}`,
    ...(command.details === undefined ? [] : [command.details]),
    ...(parameters.length === 0 ? [] : [rows(parameters)]),
    rows(flags),
    exitCodeHelp,
  ].join('\n\n')}\n`
}

/** The message for an unknown command: the commands that begin with its first word, or the closest one. */
function unknownCommand(commands: readonly Command[], words: readonly string[]): string {
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
  const near = closestWord(words[0] ?? '', [...new Set(commands.map(({ name }) => name.split(' ')[0]!))])
  const suggestion = near === undefined ? '' : ` Did you mean "pawl ${near}"?`
  return `There is no command "pawl ${typed}".${suggestion} Run pawl --help for a list of commands.`
}

function usage({ name, parameters }: Command): string {
  return [name, ...Object.keys(parameters).map(placeholder)].join(' ')
}

function placeholder(name: string): string {
  return name.endsWith('?') ? `[${name.slice(0, -1).toUpperCase()}]` : name.toUpperCase()
}

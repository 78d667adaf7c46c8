import { readConfigFile } from '../config/config-file.ts'
import { resolveSettings } from '../config/resolve-settings.ts'
import { maskKeys } from '../kernel/mask-keys.ts'
import { Problem } from '../kernel/problem.ts'
import { sanitizeJson } from '../kernel/sanitize.ts'
import type { Command } from './command.ts'
import { errorMessage, exitCodeOf, exitCodes } from './error-message.ts'
import { helpOf, overview, unknownCommand } from './help.ts'
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
    if (words.length > 0) throw invalidCommand(unknownCommand(commands, words))
    stdout.write(overview(commands))
    return argv.includes('--help') || argv.includes('-h') ? exitCodes.good : exitCodes.usage
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

/** Runs what was typed, and answers with an exit code. It is given its surroundings, so that a test can be them. */
import { readConfigFile } from '../config/config-file.ts'
import { settle } from '../config/resolve.ts'
import { maskKeys } from '../kernel/mask-keys.ts'
import { Problem } from '../kernel/problem.ts'
import { sanitizeJson } from '../kernel/sanitize.ts'
import type { Command } from './command.ts'
import { complaint, exitCodeOf, exitCodes } from './complain.ts'
import { helpOf, overview, unknownCommand } from './help.ts'
import { findCommand, readArguments, refused } from './parse.ts'
import { type Outputs, openScreen, type Screen } from './screen.ts'

export interface Surroundings extends Outputs {
  readonly folder: string
  untilTold(): AbortSignal
}

export async function run(
  commands: readonly Command[],
  argv: readonly string[],
  surroundings: Surroundings,
): Promise<number> {
  const screen = openScreen(surroundings)
  const json = argv.includes('--json')
  try {
    return await runCommand(commands, argv, surroundings, screen)
  } catch (error) {
    if (json) screen.note(asDocument(error))
    else for (const line of complaint(error)) screen.note(line)
    return exitCodeOf(error)
  }
}

async function runCommand(
  commands: readonly Command[],
  argv: readonly string[],
  { stdout, env, folder, untilTold }: Surroundings,
  screen: Screen,
): Promise<number> {
  const found = findCommand(commands, argv)
  if (found === undefined) {
    const words = argv.filter(word => !word.startsWith('-'))
    if (words.length > 0) throw refused(unknownCommand(commands, words))
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
  const settled = settle({ flags: settings, env, file })
  const { data, show, code = exitCodes.good } = await command.run({ args, flags, settled, json, screen, untilTold })
  if (json) {
    if (data !== undefined) screen.json(data)
  } else for (const line of show?.(screen) ?? []) screen.say(line)
  return code
}

function asDocument(error: unknown): string {
  const { code, details } = error instanceof Problem ? error : { code: 'BUG', details: {} }
  return maskKeys(sanitizeJson({ code, message: (error as Error).message, details }))
}

/** Finds the command on the command line, and parses its flags and arguments. */
import { parseArgs } from 'node:util'
import { parseSettingText } from '../config/resolve-settings.ts'
import { flagOf } from '../config/settings.ts'
import { Problem } from '../kernel/problem.ts'
import { closestWord } from '../kernel/suggest.ts'
import { type Command, type Flag, flagsOf } from './command.ts'

export interface ParsedArguments {
  readonly args: Readonly<Record<string, string>>
  readonly flags: Readonly<Record<string, unknown>>
  /** Values of flags that are settings, by setting name. */
  readonly settings: Readonly<Record<string, unknown>>
  readonly json: boolean
  readonly config: string | undefined
}

/** The command and the arguments after it. Undefined if no command matches. */
export function findCommand(commands: readonly Command[], argv: readonly string[]) {
  const words = argv.filter(word => !word.startsWith('-'))
  const matches = commands.filter(({ name }) => name.split(' ').every((word, index) => words[index] === word))
  const command = matches.sort((one, other) => other.name.length - one.name.length)[0]
  if (command === undefined) return undefined
  let left = command.name.split(' ').length
  const rest = argv.filter(word => word.startsWith('-') || left-- <= 0)
  return { command, rest }
}

export function readArguments(command: Command, rest: readonly string[]): ParsedArguments {
  const { flags, positionals } = readFlags(command, flagsOf(command), rest)
  const pick = (names: readonly (readonly [string, string])[]) =>
    Object.fromEntries(names.flatMap(([name, flag]) => (flags[flag] === undefined ? [] : [[name, flags[flag]]])))
  return {
    args: readPositionals(command, positionals),
    flags: pick(Object.keys(command.flags).map(name => [name, name])),
    settings: pick(command.settings.map(name => [name, flagOf(name)])),
    json: flags.json === true,
    config: flags.config as string | undefined,
  }
}

function readFlags(command: Command, known: Readonly<Record<string, Flag>>, rest: readonly string[]) {
  const options = Object.fromEntries(
    Object.entries(known).map(([name, { kind, short }]) => [
      name,
      {
        type: kind === 'switch' ? ('boolean' as const) : ('string' as const),
        multiple: kind === 'list',
        ...(short && { short }),
      },
    ]),
  )
  // Not strict, so that all error messages come from here and have one style.
  const { tokens, positionals } = parseArgs({
    args: [...rest],
    options,
    strict: false,
    tokens: true,
    allowPositionals: true,
  })
  const flags: Record<string, unknown> = {}
  for (const token of tokens) {
    if (token.kind !== 'option') continue
    const flag = Object.hasOwn(known, token.name) ? known[token.name] : undefined
    if (flag === undefined) throw unknownFlag(command, token.rawName, Object.keys(known))
    const value = readValue(token.rawName, flag, token.value)
    flags[token.name] = flag.kind === 'list' ? [...((flags[token.name] as string[]) ?? []), value] : value
  }
  return { flags, positionals }
}

function unknownFlag({ name }: Command, flag: string, known: readonly string[]): Problem {
  const near = closestWord(flag.replace(/^-+/, ''), known)
  return invalidCommand(`pawl ${name} has no flag ${flag}.${near === undefined ? '' : ` Did you mean --${near}?`}`)
}

function readValue(flag: string, { kind, words }: Flag, text: string | undefined): unknown {
  if (kind === 'switch') {
    if (text !== undefined) throw invalidCommand(`${flag} does not take a value.`)
    return true
  }
  if (text === undefined) throw invalidCommand(`${flag} requires a value.`)
  if (words !== undefined && !words.includes(text)) {
    const near = closestWord(text, words)
    throw invalidCommand(
      `${flag} must be one of ${words.join(', ')}.${near === undefined ? '' : ` Did you mean ${near}?`}`,
    )
  }
  if (kind === 'json') return readJson(flag, text)
  const value = kind === 'list' ? text : parseSettingText(kind, text)
  if (kind === 'number' && typeof value !== 'number')
    throw invalidCommand(`${flag} must be a number, not ${JSON.stringify(text)}.`)
  return value
}

export function readJson(name: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw invalidCommand(`${name} must be JSON: ${(error as Error).message}`)
  }
}

function readPositionals({ name, parameters }: Command, positionals: readonly string[]): Record<string, string> {
  const names = Object.keys(parameters)
  const missing = names.find((wanted, index) => !wanted.endsWith('?') && positionals[index] === undefined)
  if (missing !== undefined)
    throw invalidCommand(`pawl ${name} requires ${missing.toUpperCase()}: ${parameters[missing]}.`)
  if (positionals.length > names.length)
    throw invalidCommand(`Unexpected argument ${JSON.stringify(positionals[names.length])}. See pawl ${name} --help.`)
  return Object.fromEntries(positionals.map((value, index) => [names[index]!.replace(/\?$/, ''), value]))
}

export function invalidCommand(why: string): Problem {
  return new Problem('COMMAND_INVALID', { why })
}

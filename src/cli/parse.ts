/** Finds the command that was typed, and reads its flags and arguments by its table. */
import { parseArgs } from 'node:util'
import { meant } from '../config/resolve.ts'
import { flagOf } from '../config/settings.ts'
import { Problem } from '../kernel/problem.ts'
import { closestWord } from '../kernel/suggest.ts'
import { type Command, type Flag, flagsOf } from './command.ts'

export interface Typed {
  readonly args: Readonly<Record<string, string>>
  /** The command's own flags. */
  readonly flags: Readonly<Record<string, unknown>>
  /** Those that are settings, by the name of the setting. */
  readonly settings: Readonly<Record<string, unknown>>
  readonly json: boolean
  readonly config: string | undefined
}

/** The command at the beginning of what was typed, with the rest; undefined: there is none. */
export function findCommand(commands: readonly Command[], argv: readonly string[]) {
  const words = argv.filter(word => !word.startsWith('-'))
  const fits = commands.filter(({ name }) => name.split(' ').every((word, index) => words[index] === word))
  const command = fits.sort((one, other) => other.name.length - one.name.length)[0]
  if (command === undefined) return undefined
  let left = command.name.split(' ').length
  const rest = argv.filter(word => word.startsWith('-') || left-- <= 0)
  return { command, rest }
}

export function readArguments(command: Command, rest: readonly string[]): Typed {
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
  // The parser is lenient, so that every fault is told here, in the same words.
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
  const meant = closestWord(flag.replace(/^-+/, ''), known)
  return refused(`pawl ${name} knows no ${flag}.${meant === undefined ? '' : ` Did you mean --${meant}?`}`)
}

function readValue(flag: string, { kind, words }: Flag, text: string | undefined): unknown {
  if (kind === 'switch') {
    if (text !== undefined) throw refused(`${flag} takes no value.`)
    return true
  }
  if (text === undefined) throw refused(`${flag} wants a value.`)
  if (words !== undefined && !words.includes(text)) {
    const near = closestWord(text, words)
    throw refused(`${flag} must be one of ${words.join(', ')}.${near === undefined ? '' : ` Did you mean ${near}?`}`)
  }
  if (kind === 'json') return readJson(flag, text)
  const value = kind === 'list' ? text : meant({ kind }, text)
  if (kind === 'number' && typeof value !== 'number')
    throw refused(`${flag} must be a number, not ${JSON.stringify(text)}.`)
  return value
}

export function readJson(what: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw refused(`${what} must be JSON: ${(error as Error).message}`)
  }
}

function readPositionals({ name, takes }: Command, given: readonly string[]): Record<string, string> {
  const names = Object.keys(takes)
  const missing = names.find((wanted, index) => !wanted.endsWith('?') && given[index] === undefined)
  if (missing !== undefined) throw refused(`pawl ${name} wants ${missing.toUpperCase()}: ${takes[missing]}.`)
  if (given.length > names.length)
    throw refused(`pawl ${name} does not know what to do with ${JSON.stringify(given[names.length])}.`)
  return Object.fromEntries(given.map((value, index) => [names[index]!.replace(/\?$/, ''), value]))
}

export function refused(why: string): Problem {
  return new Problem('COMMAND_INVALID', { why })
}

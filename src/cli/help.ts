/** Help texts, generated from the table of commands. */

import { closestWord } from '../kernel/suggest.ts'
import { type Command, flagsOf } from './command.ts'

const ends = `Exit codes: 0 good · 1 the job ended badly, or the request was refused · 2 the command makes no sense ·
3 the server or the store cannot be reached.`

export function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(command => usage(command).length))
  const wide = Math.min(width, 34)
  const rows = commands.map(command => `  ${usage(command).padEnd(wide)}  ${command.summary}`)
  return `pawl: a durable job engine\n\n${rows.join('\n')}\n\nRun 'pawl COMMAND --help' for details. ${ends}\n`
}

export function helpOf(command: Command): string {
  const takes = Object.entries(command.takes).map(([name, summary]) => [placeholder(name), summary] as const)
  const flags = Object.entries(flagsOf(command)).map(([name, { short, value, kind, summary, words }]) => {
    const shown = `${short ? `-${short}, ` : ''}--${name}${kind === 'switch' ? '' : ` ${value ?? 'VALUE'}`}`
    return [shown, words === undefined ? summary : `${summary}: ${words.join(', ')}`] as const
  })
  const width = Math.min(28, Math.max(...[...takes, ...flags].map(([left]) => left.length)))
  const rows = (list: readonly (readonly [string, string])[]) =>
    list.map(([left, summary]) => `  ${left.padEnd(width)}  ${summary}`).join('\n')
  return `${[
    `pawl ${usage(command)} [flags]\n\n${command.summary}`,
    ...(command.more === undefined ? [] : [command.more]),
    ...(takes.length === 0 ? [] : [rows(takes)]),
    rows(flags),
    ends,
  ].join('\n\n')}\n`
}

/** The commands that begin with what was typed, or a word that is near. */
export function unknownCommand(commands: readonly Command[], words: readonly string[]): string {
  const typed = words.join(' ')
  const family = commands.filter(({ name }) => name.startsWith(`${words[0]} `))
  if (family.length > 0) {
    const [first = '', second] = words
    const known = family.map(({ name }) => name.slice(first.length + 1))
    const near = second === undefined ? undefined : closestWord(second, known)
    const meant = near === undefined ? '' : ` Did you mean "pawl ${first} ${near}"?`
    const what =
      second === undefined ? `pawl ${first} wants a command.` : `There is no command "pawl ${first} ${second}".`
    return `${what}${meant} There are: ${known.join(', ')}.`
  }
  const near = closestWord(words[0] ?? '', [...new Set(commands.map(({ name }) => name.split(' ')[0]!))])
  return `There is no command "pawl ${typed}".${near === undefined ? '' : ` Did you mean "pawl ${near}"?`} pawl --help lists them.`
}

function usage({ name, takes }: Command): string {
  return [name, ...Object.keys(takes).map(placeholder)].join(' ')
}

function placeholder(name: string): string {
  return name.endsWith('?') ? `[${name.slice(0, -1).toUpperCase()}]` : name.toUpperCase()
}

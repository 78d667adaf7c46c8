/** Help texts, generated from the table of commands. */
import { type Command, flagsOf } from './command.ts'
import { type Line, styled } from './styled-line.ts'

const exitCodeHelp = [
  'Exit codes: 0 success · 1 the job failed or the request was refused · 2 invalid command ·',
  '3 the server or store is unreachable, or the key was rejected',
]

/** The commands in their groups, with a line for each. */
export function overview(commands: readonly Command[]): Line[] {
  const shown = commands.filter(({ hidden }) => hidden !== true)
  const width = Math.min(30, Math.max(...shown.map(command => usage(command).length)))
  const groups = [...new Set(shown.map(({ group }) => group))]
  return [
    'pawl: a durable job engine',
    ...groups.flatMap(group => [
      '',
      ...(group === undefined ? [] : [styled('bold', group)]),
      ...shown
        .filter(command => command.group === group)
        .map((command): Line => [`  ${usage(command).padEnd(width)}  `, styled('dim', command.summary)]),
    ]),
    '',
    "Run 'pawl COMMAND --help' for details, and 'pawl --version' for the version.",
    '',
    ...exitCodeHelp,
  ]
}

/** The help of one command: its purpose, arguments and flags. */
export function helpOf(command: Command): Line[] {
  const parameters = Object.entries(command.parameters).map(([name, summary]) => [placeholder(name), summary] as const)
  const flags = Object.entries(flagsOf(command)).map(([name, { short, value, kind, summary, words }]) => {
    const shown = `${short ? `-${short}, ` : ''}--${name}${kind === 'switch' ? '' : ` ${value ?? 'VALUE'}`}`
    return [shown, words === undefined ? summary : `${summary}: ${words.join(', ')}`] as const
  })
  const width = Math.min(28, Math.max(...[...parameters, ...flags].map(([left]) => left.length)))
  const rows = (list: readonly (readonly [string, string])[]) =>
    list.map(([left, summary]) => `  ${left.padEnd(width)}  ${summary}`)
  return [
    `pawl ${usage(command)} [flags]`,
    '',
    command.summary,
    '',
    ...(command.details === undefined ? [] : [...command.details.split('\n'), '']),
    ...(parameters.length === 0 ? [] : [...rows(parameters), '']),
    ...rows(flags),
    '',
    ...exitCodeHelp,
  ]
}

function usage({ name, parameters }: Command): string {
  return [name, ...Object.keys(parameters).map(placeholder)].join(' ')
}

function placeholder(name: string): string {
  return name.endsWith('?') ? `[${name.slice(0, -1).toUpperCase()}]` : name.toUpperCase()
}

/** A command is data: parsing, help and shell completion are derived from it. */
import type { ResolvedSettings } from '../config/resolve-settings.ts'
import { envOf, flagOf, kindOf, placeholderOf, type Setting, type SettingName, settings } from '../config/settings.ts'
import type { DialectName } from '../protocol/dialects.ts'
import type { PawlApi } from '../protocol/operations.ts'
import { connectApi } from './connect-api.ts'
import type { Line } from './styled-line.ts'
import type { TerminalOutput } from './terminal-output.ts'
import { inVocabulary, vocabularyFlag } from './vocabulary.ts'

/** The kinds of ids and names that the server can complete. */
export type Completion = 'job' | 'stage' | 'task' | 'deadLetter' | 'type' | 'queue' | 'worker' | 'key'

export interface Flag {
  readonly kind: 'text' | 'number' | 'switch' | 'json' | 'list'
  readonly summary: string
  /** The placeholder for its value in the help. */
  readonly value?: string
  readonly short?: string
  /** The allowed values. */
  readonly words?: readonly string[]
  readonly completes?: Completion
}

export type Flags = Readonly<Record<string, Flag>>

type ValueOf<F extends Flag> = {
  text: string
  number: number
  switch: true
  json: unknown
  list: readonly string[]
}[F['kind']]

export type FlagValues<F extends Flags> = { readonly [Name in keyof F]?: ValueOf<F[Name]> | undefined }

/** A description for each positional argument. A name that ends with "?" is optional. */
type ParameterTable = Readonly<Record<string, string>>
type Args<T extends ParameterTable> = {
  readonly [Name in keyof T as Name extends `${string}?` ? never : Name]: string
} & {
  readonly [Name in keyof T as Name extends `${infer Bare}?` ? Bare : never]?: string | undefined
}

/** The result of a command: data for programs, and the same as text for people. */
export interface CommandResult {
  readonly data: unknown
  /** Undefined if the command has already printed its output. */
  readonly show?: (output: Pick<TerminalOutput, 'width'>) => readonly Line[]
  /** The exit code. Default 0. */
  readonly code?: number
}

export interface CommandContext<T extends ParameterTable = ParameterTable, F extends Flags = Flags> {
  readonly args: Args<T>
  readonly flags: FlagValues<F>
  readonly resolved: ResolvedSettings
  readonly json: boolean
  readonly output: TerminalOutput
  readonly env: Readonly<Record<string, string | undefined>>
  /** Handles SIGINT, SIGTERM and SIGHUP from now on: instead of killing the process, they abort the returned signal. */
  stopSignal(): AbortSignal
}

export interface Command {
  readonly name: string
  readonly summary: string
  /** The heading of the help under which it is listed. */
  readonly group?: string
  /** Not listed in help and completion: for scripts that Pawl itself prints. */
  readonly hidden?: true
  /** It runs without being typed, so it must not run a config file that is a program. */
  readonly runsNoCode?: true
  /** Further paragraphs of its help. */
  readonly details?: string
  readonly parameters: ParameterTable
  /** The kind of id or name that its first argument is. */
  readonly completes?: Completion
  readonly flags: Flags
  /** The settings that it uses; each is a flag too. */
  readonly settings: readonly SettingName[]
  run(context: CommandContext): Promise<CommandResult>
}

type Definition<T extends ParameterTable, F extends Flags, More = object> = Omit<
  Command,
  'parameters' | 'flags' | 'settings' | 'run'
> & {
  readonly parameters?: T
  readonly flags?: F
  readonly settings?: readonly SettingName[]
  run(context: CommandContext<T, F> & More): Promise<CommandResult>
}

// biome-ignore lint/complexity/noBannedTypes: no flags and no arguments
type None = {}

export function command<const T extends ParameterTable = None, const F extends Flags = None>(
  definition: Definition<T, F>,
): Command {
  return {
    parameters: {},
    flags: {},
    settings: [],
    ...definition,
    run: context => definition.run(context as unknown as CommandContext<T, F>),
  }
}

const connectionSettings: readonly SettingName[] = ['server', 'key', 'database', 'data', 'schema']

/** A command that calls a server, or a store that it opens itself. */
export function apiCommand<const T extends ParameterTable = None, const F extends Flags = None>(
  definition: Definition<T, F, { readonly api: PawlApi }>,
): Command {
  return command<T, F>({
    ...definition,
    settings: [...connectionSettings, ...(definition.settings ?? [])],
    async run(context) {
      await using connection = await connectApi(context.resolved)
      // Awaited here, because the connection closes when this function returns.
      return await definition.run({ ...context, api: connection.api })
    },
  })
}

/**
 * A command that shows states or events, and has a `--vocabulary` flag to show them in the words of another system. It must
 * not base decisions on them.
 */
export function showingCommand<const T extends ParameterTable = None, const F extends Flags = None>(
  definition: Definition<T, F, { readonly api: PawlApi }>,
): Command {
  const { flags = {} as F } = definition
  return apiCommand<T, F & typeof vocabularyFlag>({
    ...definition,
    flags: { ...flags, ...vocabularyFlag },
    run({ flags: typed, ...context }) {
      const { vocabulary, ...own } = typed as FlagValues<typeof vocabularyFlag>
      const api = inVocabulary(context.api, vocabulary as DialectName | undefined)
      return definition.run({ ...context, api, flags: own as FlagValues<F> })
    },
  })
}

/** All flags of a command by name, including those of its settings. */
export function flagsOf({ flags, settings: used }: Pick<Command, 'flags' | 'settings'>): Flags {
  const settingFlags = used.map(name => {
    const { summary, default: defaultValue }: Setting = settings[name]
    const value = placeholderOf(name)
    const extra = [
      envOf(name),
      defaultValue === undefined || defaultValue === false ? undefined : `default ${defaultValue}`,
    ]
      .filter(Boolean)
      .join('; ')
    const flag = {
      kind: kindOf(name) as Flag['kind'],
      summary: extra === '' ? summary : `${summary} (${extra})`,
      ...(value && { value }),
      ...(name === 'queues' && { completes: 'queue' as const }),
    }
    return [flagOf(name), flag] as const
  })
  return { ...flags, ...Object.fromEntries(settingFlags), ...globalFlags }
}

const globalFlags: Flags = {
  json: { kind: 'switch', summary: 'print one JSON document' },
  config: {
    kind: 'text',
    value: 'FILE',
    summary: 'the settings file; default: pawl.config.ts, .js, .mjs or .json in this folder',
  },
  help: { kind: 'switch', short: 'h', summary: 'show help for the command' },
}

/** What a command is: data. Parsing, help and completion are read off it. */
import type { Settled } from '../config/resolve.ts'
import { flagOf, type Setting, type SettingName, settings } from '../config/settings.ts'
import type { PawlApi } from '../protocol/api.ts'
import type { DialectName } from '../protocol/dialects.ts'
import type { Line } from './line.ts'
import { reach } from './reach.ts'
import type { Screen } from './screen.ts'
import { inVocabulary, vocabularyFlag } from './vocabulary.ts'

export interface Flag {
  readonly kind: 'text' | 'number' | 'switch' | 'json' | 'list'
  readonly summary: string
  /** What stands for its value in a line of help. */
  readonly value?: string
  readonly short?: string
  /** The only values it may have. */
  readonly words?: readonly string[]
}

type Flags = Readonly<Record<string, Flag>>

type ValueOf<F extends Flag> = {
  text: string
  number: number
  switch: true
  json: unknown
  list: readonly string[]
}[F['kind']]

type FlagValues<F extends Flags> = { readonly [Name in keyof F]?: ValueOf<F[Name]> | undefined }

/** Arguments by name; one whose name ends with "?" may be left out. */
type Takes = Readonly<Record<string, string>>
type Args<T extends Takes> = { readonly [Name in keyof T as Name extends `${string}?` ? never : Name]: string } & {
  readonly [Name in keyof T as Name extends `${infer Bare}?` ? Bare : never]?: string | undefined
}

/** What a command has to say: the data for machines, and the same for people. */
export interface Answer {
  readonly data: unknown
  /** Undefined: it was said while the command ran. */
  readonly show?: (screen: Pick<Screen, 'width'>) => readonly Line[]
  /** The exit code. Default 0. */
  readonly code?: number
}

export interface Ask<T extends Takes = Takes, F extends Flags = Flags> {
  readonly args: Args<T>
  readonly flags: FlagValues<F>
  readonly settled: Settled
  readonly json: boolean
  readonly screen: Screen
  /** From here on, a command that is told to end is not killed: the signal aborts, and it ends by itself. */
  untilTold(): AbortSignal
}

export interface Command {
  readonly name: string
  readonly summary: string
  /** More than a line, for its own help. */
  readonly more?: string
  readonly takes: Takes
  readonly flags: Flags
  /** The settings that it heeds; each is a flag too. */
  readonly settings: readonly SettingName[]
  run(ask: Ask): Promise<Answer>
}

type Definition<T extends Takes, F extends Flags, More = object> = Omit<
  Command,
  'takes' | 'flags' | 'settings' | 'run'
> & {
  readonly takes?: T
  readonly flags?: F
  readonly settings?: readonly SettingName[]
  run(ask: Ask<T, F> & More): Promise<Answer>
}

// biome-ignore lint/complexity/noBannedTypes: no flags and no arguments
type None = {}

export function command<const T extends Takes = None, const F extends Flags = None>(
  definition: Definition<T, F>,
): Command {
  return { takes: {}, flags: {}, settings: [], ...definition, run: ask => definition.run(ask as unknown as Ask<T, F>) }
}

const reaching: readonly SettingName[] = ['server', 'key', 'database', 'data', 'schema']

/** A command that asks a server, or a store that it opens itself. */
export function apiCommand<const T extends Takes = None, const F extends Flags = None>(
  definition: Definition<T, F, { readonly api: PawlApi }>,
): Command {
  return command<T, F>({
    ...definition,
    settings: [...reaching, ...(definition.settings ?? [])],
    async run(ask) {
      await using reached = await reach(ask.settled)
      // Awaited here: the store must be open until the answer has come.
      return await definition.run({ ...ask, api: reached.api })
    },
  })
}

/** One that shows states or events: in the words of another system, if it is told to. It must decide nothing by them. */
export function showingCommand<const T extends Takes = None, const F extends Flags = None>(
  definition: Definition<T, F, { readonly api: PawlApi }>,
): Command {
  const { flags = {} as F } = definition
  return apiCommand<T, F & typeof vocabularyFlag>({
    ...definition,
    flags: { ...flags, ...vocabularyFlag },
    run({ flags: typed, ...ask }) {
      const { vocabulary, ...own } = typed as FlagValues<typeof vocabularyFlag>
      const api = inVocabulary(ask.api, vocabulary as DialectName | undefined)
      return definition.run({ ...ask, api, flags: own as FlagValues<F> })
    },
  })
}

/** Every flag that a command knows, those of its settings included, by the name that is typed. */
export function flagsOf({ flags, settings: heeded }: Pick<Command, 'flags' | 'settings'>): Flags {
  const ofSettings = heeded.map(name => {
    const { kind, value, summary, env, default: usual }: Setting = settings[name]
    const more = [env, usual === undefined || usual === false ? undefined : `default ${usual}`]
      .filter(Boolean)
      .join('; ')
    const flag = {
      kind: kind as Flag['kind'],
      summary: more === '' ? summary : `${summary} (${more})`,
      ...(value && { value }),
    }
    return [flagOf(name), flag] as const
  })
  return { ...flags, ...Object.fromEntries(ofSettings), ...everywhere }
}

const everywhere: Flags = {
  json: { kind: 'switch', summary: 'print one JSON document' },
  config: {
    kind: 'text',
    value: 'FILE',
    summary: 'the settings file; default: pawl.config.ts, .js, .mjs or .json in this folder',
  },
  help: { kind: 'switch', short: 'h', summary: 'show help for the command' },
}

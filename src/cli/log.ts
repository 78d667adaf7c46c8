/** The log of a process: one line per event, as JSON for programs or in columns for people, who also get stacks in lines. */
import type { PawlConfig } from '../config/config.ts'
import type { Log } from '../engine/context.ts'
import { loggable, writeJson } from '../kernel/json.ts'
import { maskKeys, sanitizeLines } from '../kernel/sanitize.ts'
import type { LogLevel } from '../protocol/tasks/logs.ts'

export interface LogOptions {
  /** Default: pretty on a terminal, otherwise json. */
  readonly format?: 'json' | 'pretty'
  /** The lowest level to log. Default info. */
  readonly level?: LogLevel
  /** Default: standard error, which keeps logs out of the output of commands. */
  readonly out?: { write(text: string): unknown; readonly isTTY?: boolean }
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly now?: () => Date
}

const ranks: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 }
const colours: Record<LogLevel, number> = { debug: 90, info: 36, warn: 33, error: 31 }
const levels: [pattern: RegExp, level: LogLevel][] = [
  [/^integrity\.|\.unwritable$/, 'error'],
  [/\.(failed|refused|stale|dropped|line_dropped)$/, 'warn'],
  [/^(chore\.done|http\.request|task\.stack)$/, 'debug'],
]

/**
 * Creates a log. Logging never throws: it logs facts that cannot be serialized as `unwritable`. Masks keys and
 * passwords.
 */
export function makeLog({ level = 'info', out = process.stderr, ...options }: LogOptions = {}): Log {
  const { format = out.isTTY ? 'pretty' : 'json', env = process.env, now = () => new Date() } = options
  const isColoured = format === 'pretty' && out.isTTY === true && !env.NO_COLOR
  const line = format === 'json' ? jsonLine : isColoured ? colouredLine : plainLine
  return (event, facts) => {
    const lineLevel = levelOf(event, facts)
    if (ranks[lineLevel] < ranks[level]) return
    out.write(`${maskKeys(line(now().toISOString(), lineLevel, event, facts))}\n`)
  }
}

/** A log as configured by the settings. */
export function logOf({ log, logLevel }: Pick<PawlConfig, 'log' | 'logLevel'>): Log {
  return makeLog({ ...(log !== undefined && { format: log }), ...(logLevel !== undefined && { level: logLevel }) })
}

function levelOf(event: string, { level }: Record<string, unknown>): LogLevel {
  if (typeof level === 'string' && Object.hasOwn(ranks, level)) return level as LogLevel
  return levels.find(([pattern]) => pattern.test(event))?.[1] ?? 'info'
}

type Line = (time: string, level: LogLevel, event: string, facts: Record<string, unknown>) => string

/** Facts cannot override time, level and event. */
const jsonLine: Line = (time, level, event, facts) => {
  const made = writeJson({ ...facts, time, level, event }, loggable)
  return 'text' in made ? made.text : write({ time, level, event, unwritable: made.error })
}

const columns =
  (paint: (text: string, colour: number) => string): Line =>
  (time, level, event, { level: _, ...all }) => {
    const { stack, ...others } = all
    const isText = typeof stack === 'string'
    const pairs = Object.entries(isText ? others : all).flatMap(([name, value]) =>
      value === undefined
        ? []
        : [`${paint(`${name}=`, 90)}${typeof value === 'string' ? quoted(value) : write(value)}`],
    )
    const start = `${paint(time.slice(11, 23), 90)} ${paint(level.padEnd(5), colours[level])} ${event}`
    return [start, ...pairs].join(' ') + (isText ? indented(stack) : '')
  }

/** A stack takes lines of its own. They are indented, so that none of them can look like a line of the log. */
const indented = (stack: string) => `\n${sanitizeLines(stack)}`.replaceAll('\n', '\n    ')

const plainLine = columns(text => text)
const colouredLine = columns((text, colour) => `\x1b[${colour}m${text}\x1b[0m`)

/** Quotes text with line breaks or control characters, so that it stays on its line. */
function quoted(text: string): string {
  return /^[\w.:/@+-]+$/.test(text) ? text : JSON.stringify(text).replace(/[\x7f-\x9f]/g, '\uFFFD')
}

function write(value: unknown): string {
  const made = writeJson(value, loggable)
  return 'text' in made ? made.text : JSON.stringify({ unwritable: made.error })
}

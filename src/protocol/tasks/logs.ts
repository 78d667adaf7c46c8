/** Log lines of handlers. The number and size of an attempt's lines are limited. */
import { loggable, storableText, whyNotStorable, writeJson } from '../../kernel/json.ts'
import {
  type Field,
  type Fields,
  field,
  firstFault,
  nested,
  number,
  type OptionsOf,
  oneOf,
  type Static,
} from '../../schema/check.ts'
import { year } from '../../schema/fields.ts'
import { type PageQuery, pageFields } from '../call-options.ts'
import { at, object, orNull, shape, text, whole, words } from '../shapes.ts'
import type { Page } from './tasks.ts'

export const logLevels = ['debug', 'info', 'warn', 'error'] as const
/** Severity of a log line. */
export type LogLevel = (typeof logLevels)[number]

const logLine = nested(
  {
    /** Number of the line in the attempt, from 1. A line that is sent again is stored once. */
    n: number({ from: 1, to: 2 ** 31 - 1, whole: true }),
    /** Age of the line, by the worker's own clock. Default 0. */
    agoMs: number({ from: 0, to: year * 1000 }),
    /** Default info. */
    level: oneOf(logLevels),
    message: field<string>({ type: 'string' }, value => (typeof value === 'string' ? undefined : 'be a string')),
    facts: object,
  },
  ['n', 'message'],
)
/** A line that a handler logs. */
export interface LogLine extends Static<typeof logLine> {}

export const logLineView = shape({
  n: whole,
  epoch: whole,
  at,
  level: words(...logLevels),
  message: text,
  facts: orNull(object),
})
/** A stored log line. */
export interface LogLineView extends Static<typeof logLineView> {}

export const logLimits = {
  /** Lines per attempt. One more may report how many were dropped. */
  lines: 1000,
  /** Total size of an attempt's lines. The worker enforces it. */
  bytes: 262_144,
  messageLength: 4000,
  factsBytes: 4000,
}

const mostLines = logLimits.lines + 1
export const logLines: Field<readonly LogLine[]> = field(
  { type: 'array', items: logLine, maxItems: mostLines },
  value =>
    Array.isArray(value) && value.length <= mostLines
      ? firstFault(logLine, value)
      : `be a list of at most ${mostLines} lines`,
)

/** Makes a line fit for storage: truncates the message, and drops facts that are not JSON or too large. */
export function fitLine<Line extends Pick<LogLine, 'message' | 'facts'>>(line: Line): { line: Line; bytes: number } {
  const message = storableText(String(line.message), logLimits.messageLength)
  if (line.facts === undefined) return { line: { ...line, message }, bytes: Buffer.byteLength(message) }
  const facts = fitFacts(line.facts)
  return { line: { ...line, message, facts: JSON.parse(facts) }, bytes: Buffer.byteLength(message + facts) }
}

function fitFacts(facts: Record<string, unknown>): string {
  const made = writeJson(facts, loggable)
  if ('error' in made) return JSON.stringify({ dropped: made.error })
  const { text } = made
  const isLong = text.length > logLimits.factsBytes || Buffer.byteLength(text) > logLimits.factsBytes
  const why = isLong ? `longer than ${logLimits.factsBytes} bytes` : whyNotStorable(text)
  if (why !== undefined) return JSON.stringify({ dropped: why })
  return text.startsWith('{') ? text : `{"value":${text}}`
}

const ownLogQueryFields = {
  /** Only lines that were logged under this lease. */
  epoch: number({ from: 1, to: 2 ** 31 - 1, whole: true }),
} satisfies Fields
export const logQueryFields = { ...pageFields, ...ownLogQueryFields }
/** Query for the logs of a task. */
export interface LogQuery extends PageQuery, OptionsOf<typeof ownLogQueryFields> {}

/** A page of log lines. */
export interface LogPage extends Page<LogLineView> {
  /** The cursor after the last of these lines, also at the end. It continues with lines that are logged later. */
  readonly behind: string
}

/** What handlers say while they work. The lines of an attempt are limited, wherever they come from. */
import { loggable, storableText, whyNotStorable, writeJson } from '../../kernel/json.ts'
import type { Static } from '../../schema/check.ts'
import { at, object, orNull, shape, text, whole, words } from '../shapes.ts'
import type { Page } from './tasks.ts'

export const logLevels = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof logLevels)[number]

export interface LogLine {
  /** Its number in the attempt, from 1: a line that is sent again is kept once. */
  readonly n: number
  /** How long ago it was said, by the worker's own clock. Default 0. */
  readonly agoMs?: number
  /** Default info. */
  readonly level?: LogLevel
  readonly message: string
  readonly facts?: Record<string, unknown>
}

export const logLineView = shape({
  n: whole,
  epoch: whole,
  at,
  level: words(...logLevels),
  message: text,
  facts: orNull(object),
})
export type LogLineView = Static<typeof logLineView>

export const logLimits = {
  /** Lines of one attempt. One more may say how many were dropped. */
  lines: 1000,
  /** Of one attempt's lines together; kept by the worker. */
  bytes: 262_144,
  messageLength: 4000,
  factsBytes: 4000,
}

/** A line as it can be kept: cut where it is too long, and without facts that are no JSON or too large. */
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

export interface LogQuery {
  /** Only what was said under this lease. */
  readonly epoch?: number
  /** At most 1,000. Default 1,000. */
  readonly limit?: number
  readonly cursor?: string
}

export interface LogPage extends Page<LogLineView> {
  /** The cursor behind the last of these lines, also at the end: asked with it, the lines that have come since. */
  readonly behind: string
}

import { RE2JS } from 're2js'
import { compilePattern } from '../linear-pattern.ts'
import type { Meter } from '../meter.ts'
import type { Run } from './run.ts'

/** Matches texts against a pattern of the schema, which is compiled once per run. */
export function matcherOf({ patterns, meter }: Run, pattern: string): (text: string) => boolean {
  let compiled = patterns.get(pattern)
  if (compiled === undefined) {
    compiled = compilePattern(meter, fromJavaScript(pattern))
    patterns.set(pattern, compiled)
  }
  const { matches } = compiled
  return text => matches(meter, text)
}

/** Why a pattern cannot be used. JSON Schema uses JavaScript's patterns; RE2 supports most of them. */
export function patternFault(meter: Meter, pattern: string): string | undefined {
  try {
    compilePattern(meter, fromJavaScript(pattern))
    new RegExp(pattern, 'u')
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

const fromJavaScript = (pattern: string) => RE2JS.translateRegExp(pattern)

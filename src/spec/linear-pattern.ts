/**
 * Untrusted regular expressions. RE2 matches them in linear time: it has no backreferences and no lookaround. Compiling
 * and matching cost steps, which are spent in advance.
 */
import { RE2JS } from 're2js'
import type { Meter } from './meter.ts'

const longestPattern = 1000
/** Compiling a program of this size takes about 30 milliseconds. */
const largestProgram = 20_000
/** Beyond this size, compiling costs more steps than the size. */
const smallProgram = 500
const stepsPerLargePart = 10

export interface LinearPattern {
  /** Whether the pattern matches anywhere in the text. */
  matches(meter: Meter, text: string): boolean
}

/** Throws an error with the reason if the pattern cannot be used. The cost is the same if it was compiled before. */
export function compilePattern(meter: Meter, pattern: string): LinearPattern {
  if (pattern.length > longestPattern) throw new Error(`a pattern can have at most ${longestPattern} characters`)
  const size = sizeOf(pattern)
  if (size > largestProgram) throw new Error('a pattern has too many repetitions')
  meter.spend(100 + size + stepsPerLargePart * Math.max(0, size - smallProgram))
  const program = compile(pattern)
  return {
    matches(payer, text) {
      payer.spend(program.programSize() * (1 + text.length / 8))
      return program.test(text)
    },
  }
}

const token = /\\[\s\S]|\[(?:\\[\s\S]|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|[\s\S]/g

/** An upper bound for the size of the pattern with its repetitions written out. */
function sizeOf(pattern: string): number {
  const outer: number[] = []
  let size = 0
  let latest = 0
  for (const [part, least, most] of pattern.matchAll(token)) {
    if (isReadOtherwise(part))
      throw new Error('a pattern cannot contain an empty class, a POSIX class such as [[:word:]], or \\Q')
    if (part === '(') {
      outer.push(size)
      size = 0
    } else if (part === ')') {
      latest = size + 2
      size = latest + (outer.pop() ?? 0)
    } else if (least !== undefined) {
      const times = Math.max(1, Number(most || least))
      size += latest * (times - 1)
      latest *= times
    } else {
      latest = part.length
      size += latest
    }
  }
  return outer.reduce((sum, one) => sum + one, size)
}

/** RE2 finds the end of these elsewhere than this tokenizer does, so their size cannot be computed. */
function isReadOtherwise(part: string): boolean {
  return part === '\\Q' || part === '[]' || part === '[^]' || (part.startsWith('[') && part.includes('[:'))
}

/** A pattern is mostly applied to the elements of a list in turn. */
let latest: { readonly pattern: string; readonly program: RE2JS } | undefined

function compile(pattern: string): RE2JS {
  if (latest?.pattern === pattern) return latest.program
  try {
    const program = RE2JS.compile(pattern)
    latest = { pattern, program }
    return program
  } catch (error) {
    throw new Error(`the pattern ${JSON.stringify(pattern)} is not supported by RE2 (${(error as Error).message})`)
  }
}

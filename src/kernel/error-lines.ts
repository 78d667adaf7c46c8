/** The lines in which an error is shown to people: its stack, then those of the errors that led to it. */
import type { ErrorCause } from './error-cause.ts'
import { isUsersFile, readFrame } from './stack.ts'

export interface ErrorLine {
  /** How many errors it is below the first one. */
  readonly depth: number
  readonly text: string
  /** `place`: in the user's own code. `inside`: in Node or in a package. `text`: anything else. */
  readonly kind: 'text' | 'place' | 'inside'
}

export function errorLines(error: ErrorCause, depth = 0, heading = ''): ErrorLine[] {
  const { cause, errors = [] } = error
  return [
    ...ownLines(error, heading).map(text => ({ depth, text, kind: kindOf(text) })),
    ...(cause === undefined ? [] : errorLines(cause, depth + 1, 'Caused by: ')),
    ...errors.flatMap((each, index) => errorLines(each, depth + 1, `Error ${index + 1} of ${errors.length}: `)),
  ]
}

/** The same lines as one text, indented by their depth. */
export function errorText(error: ErrorCause): string {
  return errorLines(error)
    .map(({ depth, text }) => `${'  '.repeat(depth)}${text}`)
    .join('\n')
}

function ownLines({ message, name = 'Error', stack = '' }: ErrorCause, heading: string): string[] {
  const lines = (text: string) => text.trimEnd().split(/\r?\n/)
  // A stack of JavaScript begins with the message. Those of other languages end with it, or leave it out.
  const head = stack.includes(message) ? [] : lines(`${name}: ${message}`)
  const [first = '', ...rest] = [...head, ...(stack === '' ? [] : lines(stack))]
  return [`${heading}${first}`, ...rest]
}

function kindOf(text: string): ErrorLine['kind'] {
  const frame = readFrame(text)
  if (frame !== undefined) return isUsersFile(frame.file) ? 'place' : 'inside'
  return /^\s+at .*(?:\(node:|\(<anonymous>\)|\(index \d+\))/.test(text) ? 'inside' : 'text'
}

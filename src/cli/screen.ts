/** Where a command speaks: to a terminal with colours and a display that is drawn anew, or to a file in plain lines. */
import type { Writable } from 'node:stream'
import { sanitizeJson } from '../kernel/sanitize.ts'
import { type Line, render } from './line.ts'

export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number }

export interface Screen {
  readonly isTerminal: boolean
  /** Columns; Infinity where nobody said how many. */
  readonly width: number
  /** Lines; what is drawn must not be higher. */
  readonly height: number
  /** A line of the answer. It may be longer than the screen is wide. */
  say(line: Line): void
  /** Machines read the answer, so people are told elsewhere. */
  note(line: Line): void
  json(value: unknown): void
  /** One document to a line, for what has no end. */
  jsonLine(value: unknown): void
  /** Replaces what was drawn before. On a terminal only. */
  draw(lines: readonly Line[]): void
  /** What was drawn last stays, and the next thing is said below it. */
  keep(): void
}

export interface Outputs {
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
}

export function openScreen({ stdout, stderr, env }: Outputs): Screen {
  const isTerminal = stdout.isTTY === true
  const allows = (output: Output) => output.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
  const widthNow = () => stdout.columns || Number(env.COLUMNS) || Number.POSITIVE_INFINITY
  const whole = { width: Number.POSITIVE_INFINITY }
  let drawn = 0
  const erase = () => {
    const text = drawn === 0 ? '' : `\u001b[${drawn}A\u001b[J`
    drawn = 0
    return text
  }
  return {
    isTerminal,
    get width() {
      return widthNow()
    },
    get height() {
      return stdout.rows || Number.POSITIVE_INFINITY
    },
    say: line => void stdout.write(`${erase()}${render(line, { colour: allows(stdout), ...whole })}\n`),
    note(line) {
      // It may be the same terminal.
      if (drawn > 0) stdout.write(erase())
      stderr.write(`${render(line, { colour: allows(stderr), ...whole })}\n`)
    },
    json: value => void stdout.write(`${sanitizeJson(value, 2)}\n`),
    jsonLine: value => void stdout.write(`${sanitizeJson(value)}\n`),
    draw(lines) {
      // A line that wrapped would be two, and the cursor would not find back.
      const view = { colour: allows(stdout), width: widthNow() - 1 }
      const text = lines.map(line => `${render(line, view)}\n`).join('')
      stdout.write(`${erase()}${text}`)
      drawn = lines.length
    },
    keep: () => {
      drawn = 0
    },
  }
}

/** Output of a command: colours and a live display on a terminal, plain lines in a file. */
import type { Writable } from 'node:stream'
import { sanitizeJson } from '../kernel/sanitize.ts'
import { type Line, render } from './styled-line.ts'

export type OutputStream = Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number }

export interface TerminalOutput {
  readonly isTerminal: boolean
  /** Columns; Infinity if unknown. */
  readonly width: number
  /** Rows; Infinity if unknown. A live display must not be higher. */
  readonly height: number
  /** Prints a line of the result to standard output. It may be longer than the terminal is wide. */
  print(line: Line): void
  /** Prints a message to standard error, because programs parse standard output. */
  printNotice(line: Line): void
  printJson(value: unknown): void
  /** Prints a JSON document on one line, for endless output. */
  printJsonLine(value: unknown): void
  /** Replaces the live display. Only on a terminal. */
  draw(lines: readonly Line[]): void
  /** Leaves the live display as it is: later output goes below it. */
  keepDrawing(): void
}

export interface OutputStreams {
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  readonly env: Readonly<Record<string, string | undefined>>
}

export function openTerminalOutput({ stdout, stderr, env }: OutputStreams): TerminalOutput {
  const isTerminal = stdout.isTTY === true
  const hasColour = (stream: OutputStream) => stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb'
  const widthNow = () => stdout.columns || Number(env.COLUMNS) || Number.POSITIVE_INFINITY
  const unlimited = { width: Number.POSITIVE_INFINITY }
  let drawnLines = 0
  const erase = () => {
    const text = drawnLines === 0 ? '' : `\u001b[${drawnLines}A\u001b[J`
    drawnLines = 0
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
    print: line => void stdout.write(`${erase()}${render(line, { colour: hasColour(stdout), ...unlimited })}\n`),
    printNotice(line) {
      // Both streams may be the same terminal.
      if (drawnLines > 0) stdout.write(erase())
      stderr.write(`${render(line, { colour: hasColour(stderr), ...unlimited })}\n`)
    },
    printJson: value => void stdout.write(`${sanitizeJson(value, 2)}\n`),
    printJsonLine: value => void stdout.write(`${sanitizeJson(value)}\n`),
    draw(lines) {
      // A line that wrapped would take two rows, and `erase` would leave one of them.
      const view = { colour: hasColour(stdout), width: widthNow() - 1 }
      const text = lines.map(line => `${render(line, view)}\n`).join('')
      stdout.write(`${erase()}${text}`)
      drawnLines = lines.length
    },
    keepDrawing: () => {
      drawnLines = 0
    },
  }
}

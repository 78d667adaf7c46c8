/**
 * Lines of output, made of pieces with styles. `render` is the only way to the terminal: it removes control characters
 * from every piece before it adds colours, so text from outside cannot send escape sequences.
 */
import { sanitize } from '../kernel/sanitize.ts'

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

export interface Styled {
  readonly text: string
  readonly style: Style
}

export type Piece = string | Styled
export type Line = Piece | readonly Piece[]

const codes: Readonly<Record<Style, number>> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 }

export const styled = (style: Style, text: string): Styled => ({ text, style })

function piecesOf(line: Line): readonly Piece[] {
  return typeof line === 'string' || 'text' in line ? [line] : line
}

export const textOf = (piece: Piece): string => (typeof piece === 'string' ? piece : piece.text)

export function withText(piece: Piece, text: string): Piece {
  return typeof piece === 'string' ? text : { ...piece, text }
}

export function lineWidth(line: Line): number {
  return piecesOf(line).reduce((width, piece) => width + widthOf(sanitize(textOf(piece))), 0)
}

export function render(line: Line, { colour, width }: { readonly colour: boolean; readonly width: number }): string {
  let left = width
  let text = ''
  for (const piece of piecesOf(line)) {
    if (left <= 0) break
    const shown = cut(sanitize(textOf(piece)), left)
    left -= widthOf(shown)
    text +=
      colour && typeof piece !== 'string' && shown !== '' ? `\u001b[${codes[piece.style]}m${shown}\u001b[0m` : shown
  }
  return text.trimEnd()
}

const graphemes = new Intl.Segmenter('en')
/** East Asian characters and emoji take two columns. */
const wide = new RegExp(
  [
    '^[\\u1100-\\u115f\\u2e80-\\u303e\\u3041-\\u4dbf\\u4e00-\\ua4cf\\uac00-\\ud7a3\\uf900-\\ufaff]',
    '^[\\ufe30-\\ufe6f\\uff00-\\uff60\\uffe0-\\uffe6\\u{1f300}-\\u{1faff}\\u{20000}-\\u{3fffd}]',
    '^\\p{Emoji_Presentation}',
  ].join('|'),
  'u',
)

function cellsOf(grapheme: string): number {
  return wide.test(grapheme) ? 2 : 1
}

/** The number of columns that a text takes. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  let width = 0
  for (const { segment } of graphemes.segment(text)) width += cellsOf(segment)
  return width
}

/** Cuts a text to a width. An … replaces the removed end. */
export function cut(text: string, width: number): string {
  return widthOf(text) <= width ? text : `${fittingSegments([...segmentsOf(text)], width - 1).join('')}…`
}

/** Cuts a text to a width. An … replaces the removed beginning: the end of an id distinguishes it better. */
export function cutStart(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  return `…${fittingSegments([...segmentsOf(text)].reverse(), width - 1)
    .reverse()
    .join('')}`
}

function* segmentsOf(text: string): Generator<string> {
  for (const { segment } of graphemes.segment(text)) yield segment
}

function fittingSegments(segments: readonly string[], width: number): string[] {
  const fitting: string[] = []
  for (let left = width; fitting.length < segments.length; ) {
    const next = segments[fitting.length]!
    left -= cellsOf(next)
    if (left < 0) break
    fitting.push(next)
  }
  return fitting
}

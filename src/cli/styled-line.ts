/**
 * Lines of output, made of pieces with styles. `render` is the only way to the terminal: it removes control characters
 * from every piece before it adds colours, so text from outside cannot send escape sequences.
 */
import { sanitize } from '../kernel/sanitize.ts'
import { cut, widthOf } from './text-width.ts'

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

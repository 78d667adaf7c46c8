/** Tables that fit the terminal: optional columns are dropped first, then the widest columns are cut. */

import { sanitize } from '../kernel/sanitize.ts'
import type { Page } from '../protocol/tasks/tasks.ts'
import { cut, cutStart, type Line, type Piece, styled, textOf, widthOf, withText } from './styled-line.ts'

export interface Column<Row> {
  readonly header: string
  value(row: Row): Piece
  readonly align?: 'right'
  /** Where a long value is cut. Default: its end. */
  readonly cut?: 'start'
  /** The column is not made narrower than this. Default 8. */
  readonly minWidth?: number
  /** Dropped if there is not enough room. */
  readonly optional?: true
}

const gap = 2

export function table<Row>(rows: readonly Row[], columns: readonly Column<Row>[], width: number): Line[] {
  const cells = rows.map(row => columns.map(({ value }) => harmlessPiece(value(row))))
  const natural = columns.map(({ header }, index) =>
    Math.max(widthOf(header), ...cells.map(row => widthOf(textOf(row[index]!)))),
  )
  const widths = fit(columns, natural, width)
  const shown = columns.flatMap((column, index) => {
    const size = widths[index]
    return size === undefined ? [] : [{ column, index, size }]
  })
  const lineOf = (pieces: readonly Piece[]): Line =>
    shown.flatMap(({ column, index, size }, place) => {
      const isLast = place === shown.length - 1
      return [...padded(pieces[index]!, column, size), isLast ? '' : ' '.repeat(gap)]
    })
  return [columns.map(({ header }) => styled('dim', header)), ...cells].map(lineOf)
}

function harmlessPiece(piece: Piece): Piece {
  return withText(piece, sanitize(textOf(piece)))
}

/** The width of each column; undefined for a dropped column. */
function fit<Row>(columns: readonly Column<Row>[], natural: readonly number[], width: number): (number | undefined)[] {
  const minimum = columns.map(({ minWidth = 8 }, index) => Math.min(natural[index]!, minWidth))
  const sizes: (number | undefined)[] = [...natural]
  const total = (list: readonly (number | undefined)[]) => {
    const there = list.filter(size => size !== undefined)
    return there.reduce((sum, size) => sum + size, 0) + gap * (there.length - 1)
  }
  const narrowest = () => total(sizes.map((size, index) => (size === undefined ? undefined : minimum[index])))
  for (let index = columns.length - 1; index >= 0 && narrowest() > width; index--) {
    if (columns[index]!.optional) sizes[index] = undefined
  }
  for (let over = total(sizes) - width; over > 0; over--) {
    const widest = widestOf(sizes, minimum)
    if (widest === undefined) break
    sizes[widest]! -= 1
  }
  return sizes
}

function widestOf(sizes: readonly (number | undefined)[], minimum: readonly number[]): number | undefined {
  const shrinkable = sizes.flatMap((size, index) =>
    size !== undefined && size > minimum[index]! ? [{ size, index }] : [],
  )
  return shrinkable.sort((one, other) => other.size - one.size)[0]?.index
}

function padded<Row>(piece: Piece, { align, cut: side }: Column<Row>, size: number): Piece[] {
  const text = side === 'start' ? cutStart(textOf(piece), size) : cut(textOf(piece), size)
  const space = ' '.repeat(Math.max(0, size - widthOf(text)))
  return align === 'right' ? [space, withText(piece, text)] : [withText(piece, text), space]
}

/** Lines of names and values. Empty values are left out. */
export function keyValueLines(rows: readonly (readonly [string, Piece | null | undefined])[]): Line[] {
  const there = rows.filter(
    (row): row is readonly [string, Piece] => row[1] !== null && row[1] !== undefined && textOf(row[1]) !== '',
  )
  const width = Math.max(0, ...there.map(([name]) => name.length))
  return there.map(([name, value]) => [styled('dim', `  ${name.padEnd(width)}  `), value])
}

export function pageEnd({ next }: { readonly next: string | null }): Line[] {
  return next === null ? [] : [styled('dim', `More results: --cursor ${next}`)]
}

/** The result of a list command: a table and how to get the next page, or `emptyText`. */
export function pageResult<Row>(page: Page<Row>, columns: readonly Column<Row>[], emptyText: string) {
  const show = ({ width }: { readonly width: number }): Line[] =>
    page.items.length === 0 ? [emptyText] : [...table(page.items, columns, width), ...pageEnd(page)]
  return { data: page, show }
}

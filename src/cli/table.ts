/** A table that fits: columns that can be spared go first, then the widest are cut. */

import { sanitize } from '../kernel/sanitize.ts'
import type { Page } from '../protocol/tasks/tasks.ts'
import { type Line, type Piece, styled, textOf, withText } from './line.ts'
import { cut, cutStart, widthOf } from './text.ts'

export interface Column<Row> {
  readonly head: string
  of(row: Row): Piece
  /** Numbers stand under each other. */
  readonly align?: 'right'
  /** Where a value that is too long is cut. Default: its end. */
  readonly cut?: 'start'
  /** It is never cut to less. Default 8. */
  readonly least?: number
  /** It can be left out where there is no room. */
  readonly spare?: true
}

const gap = 2

export function table<Row>(rows: readonly Row[], columns: readonly Column<Row>[], width: number): Line[] {
  const cells = rows.map(row => columns.map(({ of }) => harmlessPiece(of(row))))
  const natural = columns.map(({ head }, index) =>
    Math.max(widthOf(head), ...cells.map(row => widthOf(textOf(row[index]!)))),
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
  return [columns.map(({ head }) => styled('dim', head)), ...cells].map(lineOf)
}

function harmlessPiece(piece: Piece): Piece {
  return withText(piece, sanitize(textOf(piece)))
}

/** The width of each column; undefined: it is left out. */
function fit<Row>(columns: readonly Column<Row>[], natural: readonly number[], width: number): (number | undefined)[] {
  const least = columns.map(({ least = 8 }, index) => Math.min(natural[index]!, least))
  const sizes: (number | undefined)[] = [...natural]
  const total = (list: readonly (number | undefined)[]) => {
    const there = list.filter(size => size !== undefined)
    return there.reduce((sum, size) => sum + size, 0) + gap * (there.length - 1)
  }
  const narrowest = () => total(sizes.map((size, index) => (size === undefined ? undefined : least[index])))
  for (let index = columns.length - 1; index >= 0 && narrowest() > width; index--) {
    if (columns[index]!.spare) sizes[index] = undefined
  }
  for (let over = total(sizes) - width; over > 0; over--) {
    const widest = widestOf(sizes, least)
    if (widest === undefined) break
    sizes[widest]! -= 1
  }
  return sizes
}

function widestOf(sizes: readonly (number | undefined)[], least: readonly number[]): number | undefined {
  const able = sizes.flatMap((size, index) => (size !== undefined && size > least[index]! ? [{ size, index }] : []))
  return able.sort((one, other) => other.size - one.size)[0]?.index
}

function padded<Row>(piece: Piece, { align, cut: side }: Column<Row>, size: number): Piece[] {
  const text = side === 'start' ? cutStart(textOf(piece), size) : cut(textOf(piece), size)
  const space = ' '.repeat(Math.max(0, size - widthOf(text)))
  return align === 'right' ? [space, withText(piece, text)] : [withText(piece, text), space]
}

/** Names and what they stand for, under each other; what is empty is left out. */
export function facts(rows: readonly (readonly [string, Piece | null | undefined])[]): Line[] {
  const there = rows.filter(
    (row): row is readonly [string, Piece] => row[1] !== null && row[1] !== undefined && textOf(row[1]) !== '',
  )
  const width = Math.max(0, ...there.map(([name]) => name.length))
  return there.map(([name, value]) => [styled('dim', `  ${name.padEnd(width)}  `), value])
}

/** What stands at the end of a page when there are more. */
export function pageEnd({ next }: { readonly next: string | null }): Line[] {
  return next === null ? [] : [styled('dim', `There are more: --cursor ${next}`)]
}

/** A page as a command answers with it: a table and how to see more, or what is said of an empty one. */
export function listed<Row>(page: Page<Row>, columns: readonly Column<Row>[], none: string) {
  const show = ({ width }: { readonly width: number }): Line[] =>
    page.items.length === 0 ? [none] : [...table(page.items, columns, width), ...pageEnd(page)]
  return { data: page, show }
}

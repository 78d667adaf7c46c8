/** Paging of lists. One statement with one WHERE clause returns either a page of rows or their total number. */
import { type Literal, literal } from './sql.ts'

export interface Paging {
  /** `newest`, `oldest`, or an order that the list defines, which has no cursor. */
  readonly order: string
  /** Only ids after this one. */
  readonly cursor: string | null
  readonly limit: number
  readonly offset: number
}

/** The parts of a statement before and after its WHERE clause, and the bounds of the page. */
export interface StatementFrame {
  readonly head: Literal
  readonly order: Literal
  readonly end: Literal
  readonly after: string | null
  readonly before: string | null
  readonly limit: number | null
  readonly offset: number
}

/**
 * The frame of a page of rows. `id` is the column whose order is the order of creation: the id itself, unless callers
 * may choose it.
 */
export function pageFrame(
  columns: string,
  id: string,
  { order, cursor, limit, offset }: Paging,
  by?: string,
): StatementFrame {
  const isOldest = order === 'oldest'
  return {
    head: literal(`select ${columns}`),
    order: literal(`order by ${by === undefined ? '' : `${by}, `}${id} ${isOldest ? 'asc' : 'desc'}`),
    end: literal(''),
    after: isOldest ? cursor : null,
    before: isOldest ? null : cursor,
    limit,
    offset,
  }
}

export const countFrame: StatementFrame = {
  head: literal('select count(*)::int as total from (select 1'),
  order: literal(''),
  end: literal(') as found'),
  after: null,
  before: null,
  limit: null,
  offset: 0,
}

export interface NamePaging {
  /** Only names after this one. Empty: from the first. */
  readonly after: string
  readonly limit: number
}

/** Maximum number of bytes in the long fields of a page. The first row is always returned. */
export const maxPageBytes = 4 * 2 ** 20

export type PageRow<Row> = Row & {
  /** Whether more rows follow, on this page or the next. */
  readonly more: boolean
}

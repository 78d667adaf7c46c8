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

/** The parts of a statement before and after its WHERE clause, and the bounds of the page. Its limit is one row more. */
export interface StatementFrame {
  readonly head: Literal
  readonly order: Literal
  readonly end: Literal
  readonly after: string | null
  readonly before: string | null
  readonly limit: number | null
  readonly offset: number
}

/** Maximum number of bytes in the long fields of a page. The first row is always returned. */
export const maxPageBytes = 4 * 2 ** 20

/**
 * The frame of a page of rows, each with `more`. `id` is the column whose order is the order of creation: the id itself,
 * unless callers may choose it.
 *
 * The page ends where the sum of `bytes`, an expression over `pawl.estimated_bytes`, exceeds the maximum. The rows
 * are materialized first, which copies no long value and keeps their order, so a long value beyond the end is never
 * read.
 */
export function pageFrame(
  { columns, bytes, id, by }: { columns: string; bytes: string; id: string; by?: string | undefined },
  { order, cursor, limit, offset }: Paging,
): StatementFrame {
  const isOldest = order === 'oldest'
  return {
    head: literal(`with page as materialized (select ${columns}, ${bytes} as bytes`),
    order: literal(`order by ${by === undefined ? '' : `${by}, `}${id} ${isOldest ? 'asc' : 'desc'}`),
    end: literal(`)
      select * from (
        select page.*, row_number() over () as place, sum(bytes) over (rows unbounded preceding) as bytes_so_far,
               row_number() over () < count(*) over () as more
          from page) as measured
       where place = 1 or bytes_so_far <= ${maxPageBytes}`),
    after: isOldest ? cursor : null,
    before: isOldest ? null : cursor,
    limit: limit + 1,
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

export type PageRow<Row> = Row & {
  /** Whether more rows follow, on this page or the next. */
  readonly more: boolean
}

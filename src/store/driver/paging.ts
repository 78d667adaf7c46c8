/** Lists: a page of their rows, or how many there are in all, asked by one statement with one WHERE. */
import { type Literal, literal } from './sql.ts'

export interface Paging {
  /** Any other than these two is told by the list itself, and has no cursor. */
  readonly order: string
  /** Only ids behind this one. */
  readonly cursor: string | null
  readonly limit: number
  readonly offset: number
}

/** What stands around the WHERE of a list, and bounds it. */
export interface Frame {
  readonly head: Literal
  readonly order: Literal
  readonly end: Literal
  readonly after: string | null
  readonly before: string | null
  readonly limit: number | null
  readonly offset: number
}

/** `id` is the column that says which is the newest. Ids do, where nobody chooses them: they rise with time. */
export function pageFrame(columns: string, id: string, { order, cursor, limit, offset }: Paging, by?: string): Frame {
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

export const countFrame: Frame = {
  head: literal('select count(*)::int as total from (select 1'),
  order: literal(''),
  end: literal(') as found'),
  after: null,
  before: null,
  limit: null,
  offset: 0,
}

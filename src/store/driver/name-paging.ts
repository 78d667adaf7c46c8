/** Lists in the order of their names: a page begins behind the last name of the page before it. */

export interface NamePaging {
  /** Only names behind this one. Empty: from the first. */
  readonly after: string
  readonly limit: number
}

/** Most bytes of the long fields on a page. The first row is always returned. */
export const maxPageBytes = 4 * 2 ** 20

export type PageRow<Row> = Row & {
  /** Whether rows follow this one, on this page or the next. */
  readonly more: boolean
}

import pg from 'pg'

const { builtins } = pg.types

/** Converts a column from its text form, the same way for a server and for the embedded store. */
export function columnParser(type: number): (text: string) => unknown {
  // bigint counts and transaction ids stay far below 2^53.
  return type === builtins.INT8 ? Number : pg.types.getTypeParser(type, 'text')
}

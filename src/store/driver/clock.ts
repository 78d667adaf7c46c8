import { type Literal, literal, type Sql } from './sql.ts'

/** The database's clock, which is the only one that counts; that it answers also says that the store is there. */
export async function clockMs(sql: Sql): Promise<number> {
  const [row] = await sql<{ ms: number }>`select extract(epoch from pawl.clock())::float8 * 1000 as ms`
  return row!.ms
}

/**
 * The time of the next step in the history of a row, by the row's name in the statement: now, or `at` if given, but
 * never before its last step. A transaction that began early may write late, and clocks can be set back, but
 * times in a history never decrease.
 */
export function nextTime(row: string, at = 'pawl.clock()'): Literal {
  return literal(`greatest(${at}, (${row}.history[${row}.seq]).ts)`)
}

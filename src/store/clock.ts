import type { Sql } from './sql.ts'

/** The database's clock, which is the only one that counts; that it answers also says that the store is there. */
export async function clockMs(sql: Sql): Promise<number> {
  const [row] = await sql<{ ms: number }>`select extract(epoch from pawl.clock())::float8 * 1000 as ms`
  return row!.ms
}

import type { Sql } from '../driver/sql.ts'

/** Why each of these tasks came into its state: the reason that was given, else the cause of the move. */
export async function reasonsOf(sql: Sql, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await sql<{ id: string; reason: string | null }>`
    select t.id, (select coalesce(h.payload->>'reason', h.cause) from unnest(t.history) with ordinality as h
                   where h.state = t.state and h.type is null order by h.ordinality desc limit 1) as reason
      from pawl.task t where t.id = any(${ids}::uuid[])`
  return new Map(rows.flatMap(({ id, reason }) => (reason === null ? [] : [[id, reason]])))
}

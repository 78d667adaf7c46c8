/** Ids that callers choose. Each is used once, and becomes free only long after its task or job was deleted. */
import { list, type Sql } from '../driver/sql.ts'

/**
 * Reserves the ids, in the transaction that creates their tasks or jobs. An id that is taken makes it fail
 * (`chosen_id_pkey`).
 */
export async function reserveIds(sql: Sql, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await sql`insert into pawl.chosen_id (id) select unnest(${list([...ids].sort())}::uuid[])`
}

/** Deletes ids that have been free for a long time, in batches. */
export async function deleteFreedIds(sql: Sql): Promise<number> {
  const [row] = await sql<{ n: number }>`
    with gone as (
      delete from pawl.chosen_id where id = any(array(
        select id from pawl.chosen_id where freed_at < pawl.clock() - interval '30 days' limit 1000)) returning 1
    )
    select count(*)::int as n from gone`
  return row!.n
}

/** Ids that callers choose are used once, and free again only long after what had them is gone. */
import { list, type Sql } from '../driver/sql.ts'

/** Takes them, in the transaction that makes what has them; one that is taken fails it (`chosen_id_pkey`). */
export async function reserveIds(sql: Sql, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await sql`insert into pawl.chosen_id (id) select unnest(${list([...ids].sort())}::uuid[])`
}

/** Forgets those that have been free for long, some at a time. */
export async function deleteFreedIds(sql: Sql): Promise<number> {
  const [row] = await sql<{ n: number }>`
    with gone as (
      delete from pawl.chosen_id where id = any(array(
        select id from pawl.chosen_id where freed_at < pawl.clock() - interval '30 days' limit 1000)) returning 1
    )
    select count(*)::int as n from gone`
  return row!.n
}

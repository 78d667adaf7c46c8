/**
 * Idempotency keys, and ids that callers choose. A key counts once per day. A chosen id is used once, and becomes free
 * only long after its task or job was deleted.
 */
import { list, type Sql } from '../driver/sql.ts'

/** Returns false if the key is taken. If another transaction is reserving it right now, waits for that to end. */
export async function reserveKey(sql: Sql, holder: string, key: string, request: string): Promise<boolean> {
  const made = await sql`
    insert into pawl.idempotency (holder, key, request, created_at)
    values (${holder}, ${key}, ${request}, pawl.clock())
        on conflict (holder, key) do update
       set request = excluded.request, created_at = excluded.created_at, answer = null
     where idempotency.created_at < pawl.clock() - interval '24 hours'
    returning 1 as made`
  return made.length === 1
}

export async function saveResponse(sql: Sql, holder: string, key: string, answer: unknown): Promise<void> {
  await sql`
    update pawl.idempotency set answer = ${JSON.stringify(answer)}::jsonb where holder = ${holder} and key = ${key}`
}

export async function findResponse<T>(sql: Sql, holder: string, key: string): Promise<{ request: string; answer: T }> {
  const [row] = await sql<{ request: string; answer: T }>`
    select request, answer from pawl.idempotency where holder = ${holder} and key = ${key}`
  return row!
}

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

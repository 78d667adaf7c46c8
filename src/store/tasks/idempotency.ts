import type { Sql } from '../driver/sql.ts'

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

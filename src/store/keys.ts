import type { Role } from '../kernel/role.ts'
import type { Sql } from './sql.ts'

export interface KeyRow {
  readonly id: string
  readonly name: string
  readonly role: Role
  readonly queues: string[] | null
  readonly createdAt: Date
  /** null: from before it was kept. */
  readonly createdBy: string | null
  readonly revokedAt: Date | null
  readonly revokedBy: string | null
}

export async function insertKey(
  sql: Sql,
  key: { id: string; name: string; role: Role; queues: readonly string[] | null; hash: string; actor: string },
): Promise<KeyRow> {
  const [row] = await sql<KeyRow>`
    insert into pawl.key (id, name, role, queues, hash, created_at, created_by)
    values (${key.id}::uuid, ${key.name}, ${key.role}, ${key.queues}::text[], ${key.hash}, pawl.clock(), ${key.actor})
    returning id, name, role, queues, created_at, created_by, revoked_at, revoked_by`
  return row!
}

export function listKeys(sql: Sql): Promise<KeyRow[]> {
  return sql<KeyRow>`
    select id, name, role, queues, created_at, created_by, revoked_at, revoked_by from pawl.key order by created_at, id`
}

/** A key that was revoked before stays as it was: of two who revoke it at once, the row keeps the first and his time. */
export async function endKey(sql: Sql, id: string, actor: string): Promise<KeyRow | undefined> {
  const [row] = await sql<KeyRow>`
    update pawl.key
       set revoked_at = coalesce(revoked_at, pawl.clock()),
           revoked_by = case when revoked_at is null then ${actor} else revoked_by end
     where id = ${id}::uuid
    returning id, name, role, queues, created_at, created_by, revoked_at, revoked_by`
  return row
}

export async function findKey(sql: Sql, hash: string): Promise<KeyRow | undefined> {
  const [row] = await sql<KeyRow>`
    select id, name, role, queues, created_at, created_by, revoked_at, revoked_by
      from pawl.key where hash = ${hash} and revoked_at is null`
  return row
}

export async function hasKeys(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ any: boolean }>`select exists (select from pawl.key where revoked_at is null) as any`
  return row!.any
}

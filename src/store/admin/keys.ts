import type { Role } from '../../kernel/role.ts'
import { literal, type Sql } from '../driver/sql.ts'

export interface KeyRow {
  readonly id: string
  readonly name: string
  readonly role: Role
  readonly roles: readonly Role[]
  readonly queues: readonly string[] | null
  readonly createdAt: Date
  /** Null: created before this was recorded. */
  readonly createdBy: string | null
  readonly revokedAt: Date | null
  readonly revokedBy: string | null
}

/** A process of an earlier version reads and writes only `role`. */
const columns = literal(`id, name, role, coalesce(roles, array[role]) as roles, queues,
           created_at, created_by, revoked_at, revoked_by`)

export interface NewKeyRow extends Pick<KeyRow, 'id' | 'name' | 'roles' | 'queues'> {
  readonly hash: string
  readonly actor: string
}

export async function insertKey(sql: Sql, key: NewKeyRow): Promise<KeyRow> {
  const [row] = await sql<KeyRow>`
    insert into pawl.key (id, name, role, roles, queues, hash, created_at, created_by)
    values (${key.id}::uuid, ${key.name}, ${key.roles[0]!}, ${key.roles}::text[], ${key.queues}::text[], ${key.hash},
            pawl.clock(), ${key.actor})
    returning ${columns}`
  return row!
}

export function listKeys(sql: Sql): Promise<KeyRow[]> {
  return sql<KeyRow>`
    select ${columns} from pawl.key order by created_at, id`
}

/** Revokes a key. If it is revoked twice, the row keeps the first actor and time. */
export async function endKey(sql: Sql, id: string, actor: string): Promise<KeyRow | undefined> {
  const [row] = await sql<KeyRow>`
    update pawl.key
       set revoked_at = coalesce(revoked_at, pawl.clock()),
           revoked_by = case when revoked_at is null then ${actor} else revoked_by end
     where id = ${id}::uuid
    returning ${columns}`
  return row
}

export async function findKey(sql: Sql, hash: string): Promise<KeyRow | undefined> {
  const [row] = await sql<KeyRow>`
    select ${columns}
      from pawl.key where hash = ${hash} and revoked_at is null`
  return row
}

/** The keys among these that were revoked. */
export async function findRevokedKeys(sql: Sql, ids: readonly string[]): Promise<string[]> {
  const rows = await sql<{ id: string }>`
    select id from unnest(${ids}::uuid[]) as asked (id)
     where not exists (select from pawl.key where key.id = asked.id and revoked_at is null)`
  return rows.map(({ id }) => id)
}

export async function hasKeys(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ any: boolean }>`select exists (select from pawl.key where revoked_at is null) as any`
  return row!.any
}

import { createHash, randomBytes } from 'node:crypto'
import { newId } from '../../kernel/id.ts'
import { Problem } from '../../kernel/problem.ts'
import { may, type Role } from '../../kernel/role.ts'
import { type KeyView, keyFields, type MadeKey, type NewKey } from '../../protocol/admin/admin.ts'
import { type Call, callFields, controlFields } from '../../protocol/call-options.ts'
import { endKey, findKey, findRevokedKeys, hasKeys, insertKey, type KeyRow, listKeys } from '../../store/admin/keys.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { checkId, checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { once } from '../unit-of-work.ts'
import type { Wake } from '../wake.ts'

/** Creates a key. The secret is shown only once: the store keeps only its hash. */
export async function createKey({ sql }: Context, key: NewKey, call: Call = {}): Promise<MadeKey> {
  checkOptions({ ...key, name: key.name ?? null }, keyFields, 'key')
  checkOptions(call, callFields, 'call')
  const roles = rolesIn(key)
  const mayBeNarrow = !may(roles, 'operate') && (may(roles, 'produce') || may(roles, 'work'))
  if (key.queues !== undefined && !mayBeNarrow) {
    const must = 'be left out: only keys of producers and workers can be limited to queues'
    throw new Problem('OPTION_INVALID', { at: 'key', option: 'queues', must })
  }
  // An answer stored under an idempotency key would contain the secret.
  if (call.idempotencyKey !== undefined) {
    throw new Problem('OPTION_INVALID', {
      at: 'key',
      option: 'idempotencyKey',
      must: 'be left out: secrets are not stored',
    })
  }
  const secret = `pawl_${randomBytes(32).toString('base64url')}`
  const row = await insertKey(sql, {
    id: newId(),
    name: key.name,
    roles,
    queues: key.queues ?? null,
    hash: hashOf(secret),
    actor: call.actor ?? 'operator',
  })
  return { ...toView(row), secret }
}

function rolesIn({ role, roles }: NewKey): readonly Role[] {
  if ((role === undefined) === (roles === undefined)) {
    const must = role === undefined ? 'be given, or `roles`' : 'be left out if `roles` is given'
    throw new Problem('OPTION_INVALID', { at: 'key', option: 'role', must })
  }
  return [...new Set(roles ?? [role!])]
}

export async function findKeys({ sql }: Context): Promise<KeyView[]> {
  return (await listKeys(sql)).map(toView)
}

/** Revokes a key. Every server on this store refuses it from now on and ends its open requests. */
export async function revokeKey(context: Context, id: string, call: Call = {}): Promise<KeyView> {
  checkOptions(call, controlFields, 'call')
  const keyId = checkId(id, 'KEY_NOT_FOUND')
  const channels = [revocationChannel(keyId)]
  const revoked = await once(context.sql, call, ['revoke', keyId], async tx => {
    const row = await endKey(tx, keyId, call.actor ?? 'operator')
    if (row === undefined) throw new Problem('KEY_NOT_FOUND', { id })
    await context.notifyOnCommit(tx, channels)
    return toView(row)
  })
  // The embedded store has no notifications.
  context.wake.notify(channels)
  return revoked
}

export async function keyOf({ sql }: Context, secret: string): Promise<KeyView | undefined> {
  const row = await findKey(sql, hashOf(secret))
  return row && toView(row)
}

export function anyKeys({ sql }: Context): Promise<boolean> {
  return hasKeys(sql)
}

const hashOf = (secret: string) => createHash('sha256').update(secret).digest('hex')

function toView({ createdAt, revokedAt, ...row }: KeyRow): KeyView {
  return { ...row, createdAt: createdAt.toISOString(), revokedAt: revokedAt?.toISOString() ?? null }
}

/** Calls `onRevoked` once the key is revoked. Returns a function that ends the watch. */
export type WatchKey = (keyId: string, onRevoked: () => void) => () => void

const pollMs = 2000
const prefix = 'key:'

/**
 * Sent as a notification when a key is revoked. It only makes others check their keys, so a queue with this name does
 * no harm.
 */
const revocationChannel = (keyId: string) => `${prefix}${keyId}`

/**
 * Notifies open requests when their key is revoked, so that no stream or long poll outlives it. Other processes are
 * notified; a poll every two seconds finds revocations whose notification was lost.
 */
export function makeKeyWatch(sql: Sql, wake: Pick<Wake, 'subscribe'>, ending: AbortSignal): WatchKey {
  const watched = new Map<string, Set<() => void>>()
  let timer: NodeJS.Timeout | undefined
  let isListening = false

  async function poll(): Promise<void> {
    if (watched.size === 0 || ending.aborted) return
    // Other callers report an unavailable store.
    const revoked = await findRevokedKeys(sql, [...watched.keys()]).catch(() => [])
    for (const id of revoked) {
      const callbacks = watched.get(id) ?? []
      watched.delete(id)
      for (const onRevoked of callbacks) onRevoked()
    }
  }
  const keepPolling = () => {
    if (timer !== undefined || watched.size === 0 || ending.aborted) return
    timer = setTimeout(async () => {
      await poll()
      timer = undefined
      keepPolling()
    }, pollMs)
    timer.unref()
  }
  const listen = () => {
    if (isListening) return
    isListening = true
    wake.subscribe(words => {
      const isWatched = (word: string) => word === '*' || watched.has(word.slice(prefix.length))
      if (words.some(isWatched)) void poll()
    })
  }
  return (keyId, onRevoked) => {
    listen()
    const others = watched.get(keyId)
    if (others === undefined) watched.set(keyId, new Set([onRevoked]))
    else others.add(onRevoked)
    keepPolling()
    return () => {
      const all = watched.get(keyId)
      all?.delete(onRevoked)
      if (all?.size === 0) watched.delete(keyId)
    }
  }
}

/**
 * Notifies open requests when their key is revoked, so that no stream or long poll outlives it. Other processes are
 * notified; a poll every two seconds finds revocations whose notification was lost.
 */
import { findRevokedKeys } from '../../store/admin/keys.ts'
import type { Sql } from '../../store/driver/sql.ts'
import type { Wake } from '../wake.ts'

/** Calls `onRevoked` once the key is revoked. Returns a function that ends the watch. */
export type WatchKey = (keyId: string, onRevoked: () => void) => () => void

const pollMs = 2000
const prefix = 'key:'

/**
 * Sent as a notification when a key is revoked. It only makes others check their keys, so a queue with this name does
 * no harm.
 */
export const revocationChannel = (keyId: string) => `${prefix}${keyId}`

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

/**
 * Tells those who answer requests of a key that it was revoked, so that no stream and no long poll outlives it. Other
 * processes are notified; looking every two seconds finds what no notification told.
 */
import { findRevokedKeys } from '../../store/admin/keys.ts'
import type { Sql } from '../../store/driver/sql.ts'
import type { Wake } from '../wake.ts'

/** Calls `onRevoked` once the key is revoked. Returns a function that ends the watch. */
export type WatchKey = (keyId: string, onRevoked: () => void) => () => void

const lookMs = 2000
const prefix = 'key:'

/** The word that is passed on when a key is revoked. It only makes others look, so a queue of this name does no harm. */
export const revocationOf = (keyId: string) => `${prefix}${keyId}`

export function keyWatch(sql: Sql, wake: Pick<Wake, 'overhear'>, ending: AbortSignal): WatchKey {
  const watched = new Map<string, Set<() => void>>()
  let timer: NodeJS.Timeout | undefined
  let isListening = false

  async function look(): Promise<void> {
    if (watched.size === 0 || ending.aborted) return
    // A store that is away is heard of by those who ask it for something.
    const revoked = await findRevokedKeys(sql, [...watched.keys()]).catch(() => [])
    for (const id of revoked) {
      const told = watched.get(id) ?? []
      watched.delete(id)
      for (const onRevoked of told) onRevoked()
    }
  }
  const keepLooking = () => {
    if (timer !== undefined || watched.size === 0 || ending.aborted) return
    timer = setTimeout(async () => {
      await look()
      timer = undefined
      keepLooking()
    }, lookMs)
    timer.unref()
  }
  const listen = () => {
    if (isListening) return
    isListening = true
    wake.overhear(words => {
      const isMeant = (word: string) => word === '*' || watched.has(word.slice(prefix.length))
      if (words.some(isMeant)) void look()
    })
  }
  return (keyId, onRevoked) => {
    listen()
    const others = watched.get(keyId)
    if (others === undefined) watched.set(keyId, new Set([onRevoked]))
    else others.add(onRevoked)
    keepLooking()
    return () => {
      const all = watched.get(keyId)
      all?.delete(onRevoked)
      if (all?.size === 0) watched.delete(keyId)
    }
  }
}

/** The key of a server's own workers: it is named after the process, so that one that was left behind is known by it. */
import { hostname } from 'node:os'
import type { Pawl } from '../engine/engine.ts'
import { beganAt } from '../machine/began-at.ts'

const prefix = 'workers of '

export function workersKeyName(host = hostname(), pid = process.pid): string {
  return `${prefix}${host}:${pid}`
}

/**
 * Revokes the keys of servers of this host that are gone: one that was killed could not do so itself. What is left of
 * its workers can report no more, and ends within seconds of it anyway.
 *
 * A host's name is taken to be one machine's: two that share a name and a store would revoke each other's keys. Keys of
 * hosts that never start a server again stay until somebody revokes them.
 */
export async function revokeLeftKeys(engine: Pick<Pawl, 'keys' | 'revokeKey'>): Promise<void> {
  const ofThisHost = `${prefix}${hostname()}:`
  for (const { id, name, roles, revokedAt } of await engine.keys()) {
    if (revokedAt !== null || roles.join() !== 'worker' || !name.startsWith(ofThisHost)) continue
    const pid = name.slice(ofThisHost.length)
    if (/^[1-9][0-9]*$/.test(pid) && isGone(Number(pid))) await engine.revokeKey(id)
  }
}

/** A process of our own number was an earlier one: this one has no key yet. */
const isGone = (pid: number) => pid === process.pid || beganAt(pid) === ''

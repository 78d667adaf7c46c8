/**
 * Identifies the process that created something on this machine, in a form that fits into a file name, and tells
 * whether it is still alive.
 */
import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { beganAt } from '../machine/began-at.ts'

/** Processes of other hosts, and of containers with their own host name, cannot be checked from here. */
const host = createHash('sha256').update(hostname()).digest('hex').slice(0, 8)

/** Process id and start time, because process ids are reused. */
export const ownerToken = () => `${host}-${process.pid}-${beganAt(process.pid)}`

/** Whether the owner is known to be dead. */
export function isOwnerDead(owner: string): boolean {
  const [where, pid, began] = owner.split('-')
  return where === host && beganAt(Number(pid)) !== began
}

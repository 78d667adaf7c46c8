/** Who made something on this machine, in a form that a name of a file can carry, and whether that process still lives. */
import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { beganAt } from '../machine/began-at.ts'

/** Processes of another host, or of another container with a name of its own, cannot be looked at from here. */
const host = createHash('sha256').update(hostname()).digest('hex').slice(0, 8)

/** Its number and when it began, since numbers are used again. */
export const ownerToken = () => `${host}-${process.pid}-${beganAt(process.pid)}`

/** Whether the process that has this name is known to be dead. */
export function isOwnerDead(owner: string): boolean {
  const [where, pid, began] = owner.split('-')
  return where === host && beganAt(Number(pid)) !== began
}

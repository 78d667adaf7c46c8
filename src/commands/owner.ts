/** Who made something on this machine, in a form that a name of a file can carry, and whether that process still lives. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'

/** Processes of another host, or of another container with a name of its own, cannot be looked at from here. */
const host = createHash('sha256').update(hostname()).digest('hex').slice(0, 8)

/** Its number and when it began, since numbers are used again. */
export const ownName = () => `${host}-${process.pid}-${beganAt(process.pid)}`

/** Whether the process that has this name is known to be dead. */
export function isDead(owner: string): boolean {
  const [where, pid, began] = owner.split('-')
  return where === host && beganAt(Number(pid)) !== began
}

/** As the kernel tells it; where it does not (macOS), whether the process is there. '' is: it is dead. */
function beganAt(pid: number): string {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return ''
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' ? '' : fields[19]!
  } catch {
    return 'alive'
  }
}

import { readFileSync } from 'node:fs'

/** When a process began, as the kernel tells it; where it does not (macOS), whether the process is there. '' is: it is dead. */
export function beganAt(pid: number): string {
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

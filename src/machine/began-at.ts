import { readFileSync } from 'node:fs'

/**
 * Returns when a process began, according to the kernel, or '' if it is dead. Where the kernel does not tell (macOS), a
 * living process is 'alive'.
 */
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

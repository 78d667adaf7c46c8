// The processor time of exact processes, as Linux counts it in /proc.

import { readdirSync, readFileSync } from 'node:fs'

const msPerTick = 10

/** User and system time of one process with all its threads. */
export function processorMs(pid: number): number {
  const { user, system } = statOf(pid)
  return (user + system) * msPerTick
}

/** Time of a PostgreSQL server: its main process, the children that run, and those that have ended. */
export function postgresMs(mainPid: number): number {
  const main = statOf(mainPid)
  let ticks = main.user + main.system + main.endedChildren
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    try {
      const { parent, user, system } = statOf(Number(entry))
      if (parent === mainPid) ticks += user + system
    } catch {
      // The process has ended since the folder was read.
    }
  }
  return ticks * msPerTick
}

export function residentMiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}

/** The name of the process, in brackets, may contain spaces. The other fields follow it. */
function statOf(pid: number) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const at = (index: number) => Number(fields[index])
  return { parent: at(1), user: at(11), system: at(12), endedChildren: at(13) + at(14) }
}

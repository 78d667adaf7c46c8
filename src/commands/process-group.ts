/**
 * Runs a command in its own process group, none of which outlives the attempt, even if this process is killed.
 *
 * The command waits (in a shell, which it then replaces) for a message that is sent once the guards know the group
 * (guard.ts). So there is no moment at which this process can die and leave the command behind.
 *
 * Limits: a process that leaves the group (`setsid`, a daemon) is not found again. If this process and all of its guards
 * are killed at once, the command goes on. Stdout and stderr are sockets, as Node creates them: they can be written to,
 * but not opened as /dev/stdout.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { constants } from 'node:os'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { guardGroup, sh, signalGroup } from './guard.ts'

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface ProcessGroup {
  readonly stdout: Readable
  readonly stderr: Readable
  /** Settles when the leader exits; rejects if it could not be started. */
  readonly ended: Promise<Ended>
  /** Sends a signal to every living process of the group. */
  signal(signal: 'SIGTERM' | 'SIGKILL'): void
  /** Kills the remaining processes, and resolves when none is left. */
  end(): Promise<void>
}

/** A newline is read with one system call. */
const go = '\n'
const waitScript = 'read -r go <&3 || exit 1; exec 3<&-; exec "$@"'

export function startGroup(
  command: readonly string[],
  where: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): ProcessGroup {
  const leader = spawn(sh, ['-c', waitScript, 'sh', ...command], {
    ...where,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  const ended = endOf(leader)
  const permission = leader.stdio[3] as Writable
  permission.on('error', () => {})
  const group = leader.pid
  const guarded = group === undefined ? undefined : guardGroup(group)
  guarded?.known.then(
    () => permission.end(go),
    () => leader.kill('SIGKILL'),
  )
  return {
    stdout: leader.stdout as Readable,
    stderr: leader.stderr as Readable,
    ended,
    signal: signal => void (group !== undefined && signalGroup(group, signal)),
    async end() {
      if (group !== undefined) await killGroup(group)
      guarded?.forget()
      permission.destroy()
      leader.stdout?.destroy()
      leader.stderr?.destroy()
    },
  }
}

function endOf(leader: ChildProcess): Promise<Ended> {
  const ended = new Promise<Ended>((resolve, reject) => {
    leader.once('error', reject)
    leader.once('exit', (code, signal) => resolve({ code, signal }))
  })
  ended.catch(() => {})
  return ended
}

const maxPolls = 200
const pollMs = 5

/** The wait is limited: a process that hangs in the kernel cannot be killed, but does nothing meanwhile. */
async function killGroup(group: number): Promise<void> {
  for (let poll = 0; poll < maxPolls; poll++) {
    if (!signalGroup(group, 'SIGKILL') || !(await hasLiving(group))) return
    await sleep(pollMs)
  }
}

/** A zombie stays in the group until its parent reaps it, which in a container without an init may be never. */
async function hasLiving(group: number): Promise<boolean> {
  if (process.platform !== 'linux') return true
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
    const [state, , inGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (Number(inGroup) === group && state !== 'Z' && state !== 'X') return true
  }
  return false
}

/** A SIGKILL that nobody sent usually means that the system ran out of memory. */
export function tellSignal(signal: NodeJS.Signals): string {
  const more = signal === 'SIGKILL' ? '; the system may have run out of memory' : ''
  return `${signal} (${constants.signals[signal]})${more}`
}

/**
 * Kills the commands of this process when it dies, however it dies.
 *
 * Two guards (shells) learn the process group of each command over a pipe. When the pipe closes, they kill the groups
 * that they know. There are two so that commands stay guarded while a guard that was killed is replaced, even if this
 * process is killed before it can do so. A process id is used again only after all others, so the moment between the end
 * of a group and the message that says so does not endanger other processes.
 */
import { spawn } from 'node:child_process'
import type { Socket } from 'node:net'

/**
 * Each argument is a slot and the group in it when the guard was started, so that a guard knows them from its first
 * moment. Each line that it reads is a slot and its group; an empty group frees the slot. A line that is cut short,
 * because this process died while it wrote it, is ignored: its command has not started.
 */
const guardScript = `
  trap '' HUP INT TERM QUIT
  last=-1
  learn() {
    eval "group$1=$2"
    [ "$1" -le "$last" ] || last=$1
  }
  for entry; do learn "\${entry%:*}" "\${entry#*:}"; done
  while read -r slot group; do learn "$slot" "$group"; done
  while [ "$last" -ge 0 ]; do
    eval "group=\\$group$last"
    [ -z "$group" ] || kill -s KILL -- "-$group"
    last=$((last - 1))
  done`

export const sh = '/bin/sh'
/** Shown in the process table. */
export const guardName = 'pawl-guard'

interface Guard {
  /** Resolves when the kernel has the text, so that the guard reads it even if this process dies. False: it is dead. */
  tell(text: string): Promise<boolean>
}

const wantedGuards = 2
const mostTries = 5
/** A guard that reads nothing for so long, because somebody stopped it, is replaced. */
const patienceMs = 5000

const guards = new Set<Guard>()
/** The groups of running commands, by slot. */
const groups: (number | undefined)[] = []

export interface GuardedGroup {
  /** Settles when the command may start. Rejects if no guard can be started. */
  readonly known: Promise<void>
  /** No process of the group is left. */
  forget(): void
}

export function guardGroup(group: number): GuardedGroup {
  const free = groups.indexOf(undefined)
  const slot = free < 0 ? groups.length : free
  groups[slot] = group
  return {
    known: makeKnown(slot),
    forget() {
      groups[slot] = undefined
      for (const guard of guards) void guard.tell(lineOf(slot))
    },
  }
}

/** Says what the slot holds now, so that it can be repeated at any time. */
const lineOf = (slot: number) => `${slot} ${groups[slot] ?? ''}\n`

async function makeKnown(slot: number): Promise<void> {
  for (let tries = 0; tries < mostTries; tries++) {
    keepGuards()
    const received = await Promise.all([...guards].map(guard => guard.tell(lineOf(slot))))
    if (received.length > 0 && received.every(Boolean)) return
  }
  throw new Error('The guard process could not be started. It kills the command if this worker dies.')
}

/** Replaces dead guards. If none can be started, the commands that run unguarded are killed. */
function keepGuards(): void {
  for (let missing = wantedGuards - guards.size; missing > 0; missing--) startGuard()
  if (guards.size > 0) return
  for (const group of groups) if (group !== undefined) signalGroup(group, 'SIGKILL')
}

function startGuard(): void {
  const child = spawnGuard()
  if (child?.pid === undefined) return
  const pipe = child.stdin as Socket
  const replace = () => {
    if (!guards.delete(guard)) return
    child.kill('SIGKILL')
    if (groups.some(group => group !== undefined)) keepGuards()
  }
  const guard: Guard = {
    tell: text =>
      new Promise(resolve => {
        const late = setTimeout(replace, patienceMs).unref()
        pipe.write(text, error => {
          clearTimeout(late)
          if (error) replace()
          resolve(!error)
        })
      }),
  }
  child.once('exit', replace)
  pipe.on('error', replace)
  // Guards do not keep this process alive.
  child.unref()
  pipe.unref()
  guards.add(guard)
}

/** With an empty environment, because commands could read the environment of the guard. */
function spawnGuard() {
  try {
    const stdio = ['pipe', 'ignore', 'ignore'] as const
    const known = groups.flatMap((group, slot) => (group === undefined ? [] : [`${slot}:${group}`]))
    const args = ['-c', guardScript, guardName, ...known]
    const child = spawn(sh, args, { detached: true, cwd: '/', env: {}, stdio: [...stdio] })
    return child.on('error', () => {})
  } catch {
    return undefined
  }
}

/** Returns false if no process of the group is left. */
export function signalGroup(group: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(-group, signal)
  } catch (error) {
    // Some systems refuse to signal a group in which only zombies are left.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH' && (error as NodeJS.ErrnoException).code !== 'EPERM'
  }
}

// Ends a server with all of its processes: cleanly or by force, even if this process is killed.

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

const stopSeconds = 30

/** Ends the server and waits until all its processes are gone. Kills them if that takes too long. */
export async function endServer(server: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (!isRunning(server)) return
  if (signal !== 'SIGKILL') {
    server.kill(signal)
    if (await becomesTrue(() => !isRunning(server), stopSeconds)) return
  }
  // Stopped first, so that it cannot start another child before it is killed.
  server.kill('SIGSTOP')
  const children = await childrenOf(server.pid!)
  server.kill('SIGKILL')
  for (const child of children) signalIfAlive(child, 'SIGKILL')
  const gone = await becomesTrue(() => !isRunning(server) && !children.some(isAlive), stopSeconds)
  if (!gone) throw new Error(`PostgreSQL (process ${server.pid}) does not end`)
}

export function isRunning(server: ChildProcess): boolean {
  return server.pid !== undefined && server.exitCode === null && server.signalCode === null
}

async function becomesTrue(check: () => boolean, seconds: number): Promise<boolean> {
  const deadline = Date.now() + seconds * 1000
  while (!check()) {
    if (Date.now() > deadline) return false
    await sleep(10)
  }
  return true
}

async function childrenOf(parent: number): Promise<number[]> {
  if (process.platform === 'linux') {
    const pids = readdirSync('/proc').map(Number).filter(Number.isInteger)
    return pids.filter(pid => statOf(pid)?.parent === parent)
  }
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid='])
  const rows = stdout.split('\n').map(line => line.trim().split(/\s+/).map(Number))
  return rows.filter(([, ppid]) => ppid === parent).map(([pid]) => pid!)
}

/** The fields of /proc/PID/stat. The name of the process is in brackets, and may itself contain spaces and brackets. */
function statOf(pid: number): { state: string; parent: number } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state: state!, parent: Number(parent) }
  } catch {
    return undefined
  }
}

/** A zombie counts as dead. In a container, nobody may ever reap it. */
function isAlive(pid: number): boolean {
  if (process.platform === 'linux') return (statOf(pid)?.state ?? 'Z') !== 'Z'
  return signalIfAlive(pid, 0)
}

function signalIfAlive(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

export interface Guard {
  /** Sets the process to end; 0: none. */
  watch(pid: number): void
  /** Ends the guard without killing anything. */
  release(): void
}

/**
 * A shell that outlives us, to end the server and remove the folder even when we are killed: its input closes
 * with us, however we end, and the last line it read names the server's process.
 */
export function startGuard(folderToRemove: string): Guard {
  const script = `
    while read -r line; do pid=$line; done
    if [ "\${pid:-0}" != 0 ]; then kill -QUIT "$pid"; sleep 2; kill -KILL "$pid"; fi
    if [ -n "$1" ]; then rm -rf "$1"; fi`
  const guard = spawn('sh', ['-c', script, 'guard', folderToRemove], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  const input = guard.stdin as Socket
  input.on('error', () => {})
  input.unref()
  guard.unref()
  return {
    watch: pid => void input.write(`${pid}\n`),
    release: () => void guard.kill('SIGKILL'),
  }
}

// The processes of the bench. Each is ended by its id, even if the measure that started it fails.

import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { profileFlags } from './profile.ts'

const programs = join(import.meta.dirname, 'programs')
const stopSeconds = 15
const started = new Set<ChildProcess>()

export interface ServerProcess {
  readonly url: string
  readonly pid: number
  stop(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** A Pawl server on a database (a URL), or on an embedded store (a folder). */
export async function startServerProcess(store: string): Promise<ServerProcess> {
  const child = startProgram('server.ts', [store])
  const url = await firstLine(child)
  const stop = () => end(child)
  return { url, pid: child.pid!, stop, [Symbol.asyncDispose]: stop }
}

/** A program of this folder, or any other command. */
export function startProgram(program: string, args: readonly string[]): ChildProcess {
  return startProcess(process.execPath, [...profileFlags(program), join(programs, program), ...args])
}

export function startProcess(command: string, args: readonly string[]): ChildProcess {
  return watch(spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] }))
}

/** A program that exchanges messages with the bench. */
export function forkProgram(program: string, args: readonly string[]): ChildProcess {
  return watch(fork(join(programs, program), args, { execArgv: [...process.execArgv, ...profileFlags(program)] }))
}

function watch(child: ChildProcess): ChildProcess {
  started.add(child)
  child.once('exit', () => started.delete(child))
  // Emitted if the command does not exist. `firstLine` throws then.
  child.on('error', () => started.delete(child))
  return child
}

/** The first line that a program prints. Throws if the program ends before. */
export async function firstLine(child: ChildProcess): Promise<string> {
  const [output] = await Promise.race([
    once(child.stdout!, 'data'),
    once(child, 'exit').then(([code]) => {
      throw new Error(`${child.spawnargs.slice(1, 2).join(' ')} ended with code ${code} before it was ready`)
    }),
  ])
  return String(output).split('\n')[0]!.trim()
}

/** Asks the process to stop, and kills it if it does not. */
export async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  const isEnded = await Promise.race([ended.then(() => true), sleep(stopSeconds * 1000, false, { ref: false })])
  if (isEnded) return
  child.kill('SIGKILL')
  await ended
}

export async function endProcesses(): Promise<void> {
  await Promise.allSettled([...started].map(child => end(child)))
}

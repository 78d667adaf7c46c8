/** The runners that start workers for stages with commands, chosen by the flags and settings of `up`. */

import { hostname } from 'node:os'
import type { Chore } from '../babysitter/chore.ts'
import { runInKubernetes } from '../babysitter/run-in-kubernetes.ts'
import { runLocally } from '../babysitter/run-locally.ts'
import type { Settled } from '../config/resolve.ts'
import type { Engine } from '../engine/engine.ts'
import { beganAt } from '../machine/began-at.ts'
import { openKubernetesRunner } from '../runners/kubernetes.ts'
import { type LocalPool, localPool } from '../runners/local.ts'
import { type FileLimits, limitFlags } from './file-limits.ts'
import { kubernetesOf } from './kubernetes-settings.ts'
import { logOf } from './log.ts'
import { hideOwnSecrets, withoutSecrets } from './own-secrets.ts'

export interface Runners extends AsyncDisposable {
  readonly chores: readonly Chore[]
}

interface Flags {
  /** The files that jobs may use. */
  readonly limits: FileLimits
  readonly commands?: true | undefined
  readonly workers?: number | undefined
}

const usualWorkers = 16

export async function openRunners(engine: Engine, settled: Settled, url: string, flags: Flags): Promise<Runners> {
  // Commands run as the user of this process, and would find the address of the store with its password.
  if (flags.commands === true && !hideOwnSecrets(settled)) {
    logOf(settled.values)('secrets.visible', {
      level: 'warn',
      why: 'commands can read them in this process’s environment',
    })
  }
  const pool = flags.commands === true ? await openPool(engine, settled, url, flags) : undefined
  const cluster = settled.values.kubernetes === true ? await openKubernetesRunner(kubernetesOf(settled)) : undefined
  return {
    chores: [...(pool ? [runLocally(pool)] : []), ...(cluster ? [runInKubernetes(cluster)] : [])],
    [Symbol.asyncDispose]: async () => pool?.close(),
  }
}

/** Where the server wants keys, its own workers have one. It ends with the server, or when the next one starts here. */
async function openPool(engine: Engine, settled: Settled, url: string, flags: Flags): Promise<LocalPool> {
  await revokeLeftKeys(engine)
  const wantsKeys = settled.values.keysOnly === true || (await engine.internals.anyKeys())
  const key = wantsKeys ? await engine.createKey({ name: workersKeyName(), role: 'worker' }) : undefined
  const program = [process.execPath, process.argv[1]!, 'worker', '--commands', '--with-input', '--concurrency', '1']
  const pool = localPool({
    command: [
      ...program,
      ...limitFlags(flags.limits),
      '--server',
      url,
      ...(key === undefined ? [] : ['--key-file', '-']),
    ],
    env: withoutSecrets(process.env),
    // Not in the environment nor in the arguments: commands of the workers could read it there.
    ...(key !== undefined && { input: `${key.secret}\n` }),
    most: flags.workers ?? usualWorkers,
    log: logOf(settled.values),
  })
  return {
    ...pool,
    async close() {
      await pool.close()
      if (key !== undefined) await engine.revokeKey(key.id)
    },
  }
}

/** The key of a server's own workers: it is named after the process, so that one that was left behind is known by it. */
const prefix = 'workers of '

export function workersKeyName(host = hostname(), pid = process.pid): string {
  return `${prefix}${host}:${pid}`
}

/**
 * Revokes the keys of servers of this host that are gone: one that was killed could not do so itself. What is left of
 * its workers can report no more, and ends within seconds of it anyway.
 *
 * A host's name is taken to be one machine's: two that share a name and a store would revoke each other's keys. Keys of
 * hosts that never start a server again stay until somebody revokes them.
 */
export async function revokeLeftKeys(engine: Pick<Engine, 'keys' | 'revokeKey'>): Promise<void> {
  const ofThisHost = `${prefix}${hostname()}:`
  for (const { id, name, roles, revokedAt } of await engine.keys()) {
    if (revokedAt !== null || roles.join() !== 'worker' || !name.startsWith(ofThisHost)) continue
    const pid = name.slice(ofThisHost.length)
    if (/^[1-9][0-9]*$/.test(pid) && isGone(Number(pid))) await engine.revokeKey(id)
  }
}

/** A process of our own number was an earlier one: this one has no key yet. */
const isGone = (pid: number) => pid === process.pid || beganAt(pid) === ''

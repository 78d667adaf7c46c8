/** The runners that start workers for stages with commands, chosen by the flags and settings of `up`. */

import { hostname } from 'node:os'
import type { Chore } from '../babysitter/chore.ts'
import { runInKubernetes } from '../babysitter/run-in-kubernetes.ts'
import { runLocally } from '../babysitter/run-locally.ts'
import type { ResolvedSettings } from '../config/resolve-settings.ts'
import type { Engine } from '../engine/engine.ts'
import { beganAt } from '../machine/processes.ts'
import { openKubernetesRunner } from '../runners/kubernetes.ts'
import { type LocalPool, localPool } from '../runners/local.ts'
import { type FileLimits, kubernetesOf, limitFlags } from './component-options.ts'
import { logOf } from './log.ts'
import { hideOwnSecrets, withoutSecrets } from './secrets.ts'

export interface Runners extends AsyncDisposable {
  readonly chores: readonly Chore[]
}

interface RunnerFlags {
  /** The files that jobs may use. */
  readonly limits: FileLimits
  readonly commands?: true | undefined
  readonly workers?: number | undefined
}

const defaultWorkers = 16

export async function openRunners(
  engine: Engine,
  resolved: ResolvedSettings,
  url: string,
  flags: RunnerFlags,
): Promise<Runners> {
  // Commands run as the same user as this process, so they could read the database URL with its password.
  if (flags.commands === true && !hideOwnSecrets(resolved)) {
    logOf(resolved.values)('secrets.visible', {
      level: 'warn',
      why: 'commands can read them in this process’s environment',
    })
  }
  const pool = flags.commands === true ? await openPool(engine, resolved, url, flags) : undefined
  const cluster = resolved.values.kubernetes === true ? await openKubernetesRunner(kubernetesOf(resolved)) : undefined
  return {
    chores: [...(pool ? [runLocally(pool)] : []), ...(cluster ? [runInKubernetes(cluster)] : [])],
    [Symbol.asyncDispose]: async () => pool?.close(),
  }
}

/**
 * If the server requires keys, its workers get one, revoked when the server stops or when the next one starts on this
 * host.
 */
async function openPool(
  engine: Engine,
  resolved: ResolvedSettings,
  url: string,
  flags: RunnerFlags,
): Promise<LocalPool> {
  await revokeStaleKeys(engine)
  const requiresKeys = resolved.values.keysOnly === true || (await engine.internals.anyKeys())
  const key = requiresKeys ? await engine.createKey({ name: workersKeyName(), role: 'worker' }) : undefined
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
    // Not as an argument or environment variable: the commands that workers run could read those.
    ...(key !== undefined && { input: `${key.secret}\n` }),
    most: flags.workers ?? defaultWorkers,
    log: logOf(resolved.values),
  })
  return {
    ...pool,
    async close() {
      await pool.close()
      if (key !== undefined) await engine.revokeKey(key.id)
    },
  }
}

/** The key of the workers is named after the server's process, so that a later server can recognize a stale one. */
const prefix = 'workers of '

export function workersKeyName(host = hostname(), pid = process.pid): string {
  return `${prefix}${host}:${pid}`
}

/**
 * Revokes the keys of servers on this host that have died: a server that was killed could not do that itself. Its
 * remaining workers can no longer report, but they stop within seconds anyway.
 *
 * Assumes that host names are unique: two hosts with the same name and store would revoke each other's keys. The keys of
 * a host that never starts a server again stay until somebody revokes them.
 */
export async function revokeStaleKeys(engine: Pick<Engine, 'keys' | 'revokeKey'>): Promise<void> {
  const ofThisHost = `${prefix}${hostname()}:`
  for (const { id, name, roles, revokedAt } of await engine.keys()) {
    if (revokedAt !== null || roles.join() !== 'worker' || !name.startsWith(ofThisHost)) continue
    const pid = name.slice(ofThisHost.length)
    if (/^[1-9][0-9]*$/.test(pid) && isGone(Number(pid))) await engine.revokeKey(id)
  }
}

/** This process has no key yet, so a key with its pid belongs to an earlier process. */
const isGone = (pid: number) => pid === process.pid || beganAt(pid) === ''

/** The runners that start workers for stages with commands, chosen by the flags and settings of `up`. */
import type { Chore } from '../babysitter/chore.ts'
import { runInKubernetes } from '../babysitter/run-in-kubernetes.ts'
import { runLocally } from '../babysitter/run-locally.ts'
import type { Settled } from '../config/resolve.ts'
import type { Pawl } from '../engine/engine.ts'
import { openKubernetesRunner } from '../runners/kubernetes.ts'
import { type LocalPool, localPool } from '../runners/local.ts'
import { kubernetesOf } from './kubernetes-settings.ts'
import { logOf } from './log.ts'
import { revokeLeftKeys, workersKeyName } from './workers-key.ts'

export interface Runners extends AsyncDisposable {
  readonly chores: readonly Chore[]
}

interface Flags {
  readonly commands?: true | undefined
  readonly workers?: number | undefined
}

const usualWorkers = 16

export async function openRunners(engine: Pawl, settled: Settled, url: string, flags: Flags): Promise<Runners> {
  const pool = flags.commands === true ? await openPool(engine, settled, url, flags.workers ?? usualWorkers) : undefined
  const cluster = settled.values.kubernetes === true ? await openKubernetesRunner(kubernetesOf(settled)) : undefined
  return {
    chores: [...(pool ? [runLocally(pool)] : []), ...(cluster ? [runInKubernetes(cluster)] : [])],
    [Symbol.asyncDispose]: async () => pool?.close(),
  }
}

/** Where the server wants keys, its own workers have one. It ends with the server, or when the next one starts here. */
async function openPool(engine: Pawl, settled: Settled, url: string, most: number): Promise<LocalPool> {
  await revokeLeftKeys(engine)
  const wantsKeys = settled.values.keysOnly === true || (await engine.anyKeys())
  const key = wantsKeys ? await engine.createKey({ name: workersKeyName(), role: 'worker' }) : undefined
  const program = [process.execPath, process.argv[1]!, 'worker', '--commands', '--with-input', '--concurrency', '1']
  const { PAWL_KEY: _own, ...env } = process.env
  const pool = localPool({
    command: [...program, '--server', url],
    env: { ...env, ...(key !== undefined && { PAWL_KEY: key.secret }) },
    most,
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

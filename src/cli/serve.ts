/** Runs the store, the HTTP server and the background chores in this process, for `pawl up` and `pawl dev`. */
import { dialectsOf, type ResolvedSettings, serverBoundsOf, storeOf } from '../config/resolve-settings.ts'
import type { Engine } from '../engine/engine.ts'
import { Problem } from '../kernel/problem.ts'
import { withoutUndefined } from '../kernel/without-undefined.ts'
import { isLoopback } from '../server/authenticate.ts'
import { fileLimitsOf, podRulesOf } from './component-options.ts'
import { logOf } from './log.ts'
import { pipelinesOf } from './read-spec.ts'

export interface Serving {
  readonly engine: Engine
  readonly url: string
  /** The folder of the store, or "PostgreSQL". */
  readonly where: string
}

/** How command tasks are run. */
export interface ServeFlags {
  readonly commands?: true | undefined
  readonly workers?: number | undefined
}

/** Serves until `use` returns, and then stops everything in order. */
export async function serve(
  resolved: ResolvedSettings,
  flags: ServeFlags,
  use: (serving: Serving) => Promise<void>,
): Promise<void> {
  const { host, port, keysOnly, maxPayloadBytes, taskTypes = {} } = resolved.values
  // A key must not give access to all files of this machine.
  const limits = fileLimitsOf(resolved, keysOnly === true || !isLoopback(host) ? [] : undefined)
  const dialects = dialectsOf(resolved)
  const store = storeOf(resolved)
  const log = logOf(resolved.values)
  const { allChores, openRunners, openEngine, startBabysitter, startServer } = await loadModules()
  await using engine = await openEngine({
    ...store,
    maxPayloadBytes,
    ...(await pipelinesOf(resolved)),
    log,
    // A server that starts no pods leaves this check to the servers that do.
    ...(resolved.values.kubernetes === true && { podRules: podRulesOf(resolved) }),
    ...withoutUndefined({ fileRoots: limits.roots, s3Buckets: limits.buckets }),
  })
  for (const [type, options] of Object.entries(taskTypes)) await engine.putTaskType(type, options)
  const options = { host, port, keysOnly, ...serverBoundsOf(resolved), log, ...dialects }
  const server = await startServer(engine, options).catch(addOrigin(resolved))
  await using _server = { [Symbol.asyncDispose]: () => server.close() }
  await using runners = await openRunners(engine, resolved, server.url, { ...flags, limits })
  await using _babysitter = startBabysitter(engine, [...allChores(engine.context), ...runners.chores])
  await use({ engine, url: server.url, where: 'folder' in store ? store.folder : 'PostgreSQL' })
}

/** Imported only here, so that other commands start faster. */
async function loadModules() {
  return {
    ...(await import('../babysitter/babysitter.ts')),
    ...(await import('../engine/engine.ts')),
    ...(await import('../server/server.ts')),
    ...(await import('./runners.ts')),
  }
}

/** Adds to the error where the address was configured, unless it was given as a flag. */
function addOrigin({ sources }: ResolvedSettings) {
  return (error: unknown): never => {
    if (!(error instanceof Problem) || !['KEYS_WANTED', 'PORT_TAKEN', 'PORT_REFUSED'].includes(error.code)) throw error
    const { host, port } = sources
    const chosen = [host, port].filter(({ from }) => from === 'env' || from === 'file').map(({ name }) => name)
    throw chosen.length === 0
      ? error
      : new Problem(error.code, { ...error.details, chosenBy: chosen.join(', ') }, error)
  }
}

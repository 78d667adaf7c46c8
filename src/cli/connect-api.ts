/** Connects a command to Pawl: to a server, or directly to a store that a flag names. */
import { existsSync } from 'node:fs'
import { connect } from '../client/client.ts'
import { type ResolvedSettings, serverOf, storeOf } from '../config/resolve-settings.ts'
import { Problem } from '../kernel/problem.ts'
import type { PawlApi } from '../protocol/operations.ts'
import { pipelinesOf } from './read-spec.ts'

export interface ApiConnection extends AsyncDisposable {
  readonly api: PawlApi
}

/** Whether the command opens a store itself, instead of calling a server. */
export function opensStore({ sources }: ResolvedSettings): boolean {
  return sources.database.from === 'flag' || sources.data.from === 'flag'
}

/** Throws if the folder does not exist: a mistyped one must not become a new store. */
export function existingStore(resolved: ResolvedSettings): ReturnType<typeof storeOf> {
  const store = storeOf(resolved)
  if ('folder' in store && !existsSync(store.folder)) {
    throw new Problem('FILE_INVALID', {
      file: store.folder,
      why: 'there is no store in this folder; `pawl up` or `pawl migrate` creates one',
    })
  }
  return store
}

export async function connectApi(resolved: ResolvedSettings): Promise<ApiConnection> {
  if (opensStore(resolved)) {
    if (resolved.sources.server.from === 'flag') {
      throw new Problem('COMMAND_INVALID', { why: '--server cannot be combined with --database or --data.' })
    }
    // Loaded only here, so that commands that call a server start faster.
    const { pawl } = await import('../engine/engine.ts')
    const engine = await pawl({ ...existingStore(resolved), ...(await pipelinesOf(resolved)) })
    return { api: engine, [Symbol.asyncDispose]: () => engine.close() }
  }
  const { key } = resolved.values
  // No retries: a person is waiting, and wants to know at once that there is no server.
  const client = connect({ server: serverOf(resolved), patienceSeconds: 0, ...(key !== undefined && { key }) })
  return { api: client, [Symbol.asyncDispose]: () => client.close() }
}

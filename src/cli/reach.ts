/** Gets hold of Pawl: through a server, or straight in a store where a flag names one. Both answer the same. */
import { existsSync } from 'node:fs'
import { connect } from '../client/client.ts'
import { type Settled, serverOf, storeOf } from '../config/resolve.ts'
import { Problem } from '../kernel/problem.ts'
import type { PawlApi } from '../protocol/api.ts'
import { pipelinesOf } from './pipelines.ts'

export interface Reached extends AsyncDisposable {
  readonly api: PawlApi
}

export function namesStore({ sources }: Settled): boolean {
  return sources.database.from === 'flag' || sources.data.from === 'flag'
}

/** A store that is there: a folder that was mistyped must not become a new one. */
export function demandStore(settled: Settled): ReturnType<typeof storeOf> {
  const store = storeOf(settled)
  if ('folder' in store && !existsSync(store.folder)) {
    throw new Problem('FILE_INVALID', {
      file: store.folder,
      why: 'there is no store; `pawl up` or `pawl migrate` makes one',
    })
  }
  return store
}

export async function reach(settled: Settled): Promise<Reached> {
  if (namesStore(settled)) {
    if (settled.sources.server.from === 'flag') {
      throw new Problem('COMMAND_INVALID', {
        why: 'a server or a store: --server goes with neither --database nor --data',
      })
    }
    // A command that speaks to a server begins sooner without it.
    const { openEngine } = await import('../engine/engine.ts')
    const engine = await openEngine({ ...demandStore(settled), ...(await pipelinesOf(settled)) })
    return { api: engine, [Symbol.asyncDispose]: () => engine.close() }
  }
  const { key } = settled.values
  // A person waits: a server that is not there is told at once.
  const client = connect({ server: serverOf(settled), patienceSeconds: 0, ...(key !== undefined && { key }) })
  return { api: client, [Symbol.asyncDispose]: () => client.close() }
}

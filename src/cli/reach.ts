/** Gets hold of Pawl: through a server, or straight in a store where a flag names one. Both answer the same. */
import { connect } from '../client/client.ts'
import { type Settled, serverOf, storeOf } from '../config/resolve.ts'
import { pawl } from '../engine/engine.ts'
import { Problem } from '../kernel/problem.ts'
import type { PawlApi } from '../protocol/api.ts'

export interface Reached extends AsyncDisposable {
  readonly api: PawlApi
}

export function namesStore({ sources }: Settled): boolean {
  return sources.database.from === 'flag' || sources.data.from === 'flag'
}

/** A person waits: a server that is not there is told at once, unless the command has time. */
export async function reach(settled: Settled, patienceSeconds = 0): Promise<Reached> {
  if (namesStore(settled)) {
    if (settled.sources.server.from === 'flag') {
      throw new Problem('COMMAND_INVALID', {
        why: 'a server or a store: --server goes with neither --database nor --data',
      })
    }
    const engine = await pawl(storeOf(settled))
    return { api: engine, [Symbol.asyncDispose]: () => engine.close() }
  }
  const { key } = settled.values
  const client = connect({ server: serverOf(settled), patienceSeconds, ...(key !== undefined && { key }) })
  return { api: client, [Symbol.asyncDispose]: () => client.close() }
}

// Shared by the measures of Pawl alone: an engine on an empty database.

import type pg from 'pg'
import { type Pawl, pawl } from '../dist/index.js'
import type { Cluster } from '../test/harness/cluster.ts'
import { createDatabase, openConnection } from './entrants.ts'
import { drain, fill } from './work.ts'

export interface OwnStore {
  url: string
  engine: Pawl
  client: pg.Client
  fill(count: number): Promise<void>
  /** Tasks per second. */
  drain(count: number): Promise<number>
  tidy(): Promise<void>
  close(): Promise<void>
}

const opened = new Set<() => Promise<void>>()

/** Returns `close` for the measure to call. If the measure fails or hangs, it is called anyway, but never twice. */
export function closeAfterMeasure(close: () => Promise<unknown>): () => Promise<void> {
  const once = async () => {
    if (opened.delete(once)) await close()
  }
  opened.add(once)
  return once
}

export async function closeOwnStores(): Promise<void> {
  await Promise.allSettled([...opened].map(close => close()))
}

export async function openOwnStore(cluster: Cluster, name: string): Promise<OwnStore> {
  const url = await createDatabase(cluster, `own_${name.replaceAll('-', '_')}`)
  const engine = await pawl({ database: url })
  const client = await openConnection(url)
  return {
    url,
    engine,
    client,
    fill: count => fill(engine, count),
    drain: count => drain(engine, count),
    async tidy() {
      await client.query('vacuum analyze')
      await client.query('checkpoint')
    },
    close: closeAfterMeasure(async () => {
      await client.end()
      await engine.close()
    }),
  }
}

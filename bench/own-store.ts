// Shared by the measures of Pawl alone: an engine on an empty database, and functions to fill and drain it.

import pg from 'pg'
import { defineTask, type Pawl, pawl, startWorker } from '../dist/index.js'
import type { Cluster } from '../test/harness/cluster.ts'
import { countdown, enqueueInBatches } from './contender.ts'
import { createDatabase } from './entrants.ts'

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

const opened = new Set<OwnStore>()

/** Closes what a failed measure left open: the server's shutdown would end the process through an open connection. */
export async function closeOwnStores(): Promise<void> {
  for (const store of opened) await store.close()
}

const workerSettings = { concurrency: 200, buffer: 1800, waitSeconds: 5 }

export async function openOwnStore(cluster: Cluster, name: string): Promise<OwnStore> {
  const url = await createDatabase(cluster, `own_${name.replaceAll('-', '_')}`)
  const engine = await pawl({ database: url })
  const client = new pg.Client(url)
  await client.connect()
  const store: OwnStore = {
    url,
    engine,
    client,
    fill: count =>
      enqueueInBatches({ count, batch: 5000, atOnce: 2 }, payloads =>
        engine.enqueueMany(payloads.map(payload => ({ type: 'noop', payload }))),
      ),
    async drain(count) {
      const { done, tick } = countdown(count)
      const noop = defineTask({ type: 'noop', handler: async () => tick() })
      const began = performance.now()
      const workers = [startWorker(engine, [noop], workerSettings), startWorker(engine, [noop], workerSettings)]
      await done
      while (workers.some(worker => worker.inHand() > 0)) await new Promise(setImmediate)
      const seconds = (performance.now() - began) / 1000
      await Promise.all(workers.map(worker => worker.stop()))
      return count / seconds
    },
    async tidy() {
      await client.query('vacuum analyze')
      await client.query('checkpoint')
    },
    async close() {
      if (!opened.delete(store)) return
      await client.end()
      await engine.close()
    },
  }
  opened.add(store)
  return store
}

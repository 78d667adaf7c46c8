/**
 * A small installation under load, for fault injection: a server with a babysitter and a worker, producers that record
 * acknowledgements, and a reader that follows the event feed. `checkTables`, which uses none of the engine's code,
 * compares these records with the tables.
 */
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startBabysitter } from '../../src/babysitter/babysitter.ts'
import { connect } from '../../src/client/client.ts'
import { type Engine, openEngine, type PawlOptions } from '../../src/engine/engine.ts'
import { isTransient, Problem } from '../../src/kernel/problem.ts'
import { startServer } from '../../src/server/server.ts'
import type { JobSpec } from '../../src/spec/job-spec.ts'
import { defineTask, startWorker } from '../../src/worker/index.ts'
import { eventually } from '../harness/eventually.ts'
import { checkTables, type Seen } from './check-tables.ts'

export interface RigOptions {
  /** How the installation connects to its database. */
  readonly store: PawlOptions
  /** How the checker connects: not through any proxy. */
  readonly directUrl: () => string
  readonly schema: string
  /** Further servers for the producers. */
  readonly servers?: readonly string[]
  /** A promoted standby may lack the last acknowledged writes, if it followed asynchronously. */
  readonly mayLose?: boolean
}

const job: JobSpec = {
  name: 'rig',
  stages: [
    { name: 'first', task: 'note', payloads: [1, 2] },
    { name: 'second', task: 'note', when: 'stages.first.output.all(n, n > 0)', forEach: 'stages.first.output' },
  ],
}

/** Runs under load, injects `fault`, waits for recovery, and checks everything. */
export async function underFault(t: TestContext, options: RigOptions, fault: () => Promise<void>): Promise<void> {
  const engine = await openEngine({ ...options.store, schema: options.schema, migrate: false })
  const server = await startServer(engine, { port: 0 })
  const babysitter = startBabysitter(engine)
  const note = defineTask({ type: 'note', leaseSeconds: 5, handler: (n: number) => n })
  const worker = startWorker(engine, [note], { waitSeconds: 1, concurrency: 4 })
  const ending = new AbortController()
  // However the test ends, nothing keeps running.
  t.after(async () => {
    ending.abort()
    await following.stop().catch(() => {})
    await worker.stop(0)
    await babysitter.stop()
    await server.close()
    await engine.close()
  })
  const seen: Seen = { tasks: [], jobs: [], events: [], gone: 0 }
  const urls = [server.url, ...(options.servers ?? [])]
  const producing = urls.map(url => produce(url, seen, ending.signal))
  const following = follow(engine, seen, ending.signal)
  await eventually('work is being done', () => seen.tasks.length > 50)
  await fault()
  const healedAt = performance.now()
  const client = connect({ server: server.url, patienceSeconds: 60 })
  const probe = await client.enqueue('note', 1)
  await eventually('a new task is done', async () => (await client.task(probe.id)).state === 'succeeded')
  t.diagnostic(`recovered ${((performance.now() - healedAt) / 1000).toFixed(1)} s after the fault ended: ${t.name}`)
  ending.abort()
  await Promise.all(producing)
  await checkTables({ ...options, url: options.directUrl(), seen, follow: () => following.caughtUp() })
  await following.stop()
}

/** Uses the public client, which repeats unanswered requests with the same key. */
async function produce(url: string, seen: Seen, signal: AbortSignal): Promise<void> {
  const client = connect({ server: url, patienceSeconds: 60 })
  for (let round = 0; !signal.aborted; round++) {
    const tasks = await client.enqueueMany(Array.from({ length: 5 }, (_, n) => ({ type: 'note', payload: n })))
    seen.tasks.push(...tasks.map(({ id }) => id))
    if (round % 5 === 0) seen.jobs.push((await client.submit(job)).id)
    await sleep(20)
  }
}

/** Reads the feed from its start, page by page, and continues from its last cursor, whatever happens in between. */
function follow(engine: Engine, seen: Seen, signal: AbortSignal) {
  let cursor: string | undefined
  let isStopped = false
  let emptyPages = 0
  const read = async () => {
    try {
      const page = await engine.events({ limit: 500, ...(cursor !== undefined && { cursor }) })
      cursor = page.next
      seen.events.push(...page.items.map(({ entityId, seq }) => `${entityId} ${seq}`))
      emptyPages = page.items.length === 0 ? emptyPages + 1 : 0
    } catch (error) {
      if (error instanceof Problem && error.code === 'CURSOR_GONE') {
        // Earlier events belong to another history: start again.
        cursor = undefined
        seen.gone += 1
        seen.events.length = 0
      } else if (!isTransient(error) && !isStopped) throw error
    }
  }
  const reading = (async () => {
    while (!isStopped) {
      await read()
      await sleep(signal.aborted ? 50 : 10)
    }
  })()
  return {
    async caughtUp() {
      // Other transactions on the same server hold events back, and a page without them looks like the end.
      await eventually('the feed shows everything', async () => (await engine.internals.totals()).feedLagSeconds === 0)
      emptyPages = 0
      await eventually('the feed has been read', () => emptyPages > 5)
    },
    stop() {
      isStopped = true
      return reading
    },
  }
}

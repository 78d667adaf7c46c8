import pg from 'pg'
import { defineTask, pawl, startWorker } from '../../dist/index.js'
import { type Contender, type ContenderEnv, countdown, enqueueInBatches, latencyProbe } from '../contender.ts'

const workers = 2
const settings = { concurrency: 200, buffer: 1800, waitSeconds: 5 }

/** Pawl with its defaults: guards, event log, sessions, lanes, leases and the feed. */
export async function openContender({ databaseUrl }: ContenderEnv): Promise<Contender> {
  const engine = await pawl({ database: databaseUrl, connections: 4 })
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  pool.on('error', () => {})
  let started: ReturnType<typeof startWorker>[] = []
  const rest = async () => {
    await Promise.all(started.map(worker => worker.stop()))
    started = []
  }
  const left = async () => {
    const { rows } = await pool.query('select count(*)::int as left from pawl.task where ended_at is null')
    return rows[0].left as number
  }
  return {
    settings:
      `\`enqueueMany()\` of 5,000 over 2 connections; ${workers} workers in one process, each with ` +
      `\`concurrency: ${settings.concurrency}\`, \`buffer: ${settings.buffer}\`; guards, event log and feed on`,
    enqueue: count =>
      enqueueInBatches({ count, batch: 5000, atOnce: 2 }, payloads =>
        engine.enqueueMany(payloads.map(payload => ({ type: 'noop', payload }))),
      ),
    async drain(count) {
      const { done, tick } = countdown(count)
      const noop = defineTask({ type: 'noop', handler: async () => tick() })
      started = Array.from({ length: workers }, () => startWorker(engine, [noop], settings))
      await done
      // A task is done when its settle has been answered, not when its handler has returned.
      while (started.some(worker => worker.inHand() > 0)) await new Promise(setImmediate)
    },
    rest,
    async latency(samples) {
      const { handler, sample } = latencyProbe()
      const noop = defineTask({ type: 'noop', handler: async () => handler() })
      started = [startWorker(engine, [noop])]
      const took = await sample(samples, () => engine.enqueue('noop', { one: 1 }))
      await rest()
      return took
    },
    left,
    clear: async () => void (await pool.query('truncate pawl.task, pawl.due, pawl.claim, pawl.change, pawl.trouble')),
    async close() {
      await rest()
      await engine.close()
      await pool.end()
    },
  }
}

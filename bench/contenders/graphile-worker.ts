import { Logger, makeWorkerUtils, run, runOnce, type TaskList } from 'graphile-worker'
import pg from 'pg'
import { type Contender, type ContenderEnv, enqueueInBatches, latencyProbe, type OpenContender } from '../contender.ts'

/** As its own documentation sets it up for speed: a local queue of 500, and completions in batches. */
export const openContender: OpenContender = env => openGraphileWorker(env, { pools: 1, queue: 500 })

/** `pools` of workers in this process, each with a local queue of this size. */
export async function openGraphileWorker(
  { databaseUrl }: ContenderEnv,
  { pools, queue }: { pools: number; queue: number },
): Promise<Contender> {
  const logger = new Logger(() => () => {})
  // One pool for all of its parts, so that a drain finds its connections open.
  const pgPool = new pg.Pool({ connectionString: databaseUrl, max: 30 })
  pgPool.on('error', () => {})
  pgPool.on('connect', client => client.on('error', () => {}))
  const preset: GraphileConfig.Preset = {
    worker: {
      concurrentJobs: 24,
      maxPoolSize: 25,
      localQueue: { size: queue },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
  }
  const utils = await makeWorkerUtils({ pgPool, logger, preset })
  await utils.migrate()
  const worker = (taskList: TaskList) => ({ pgPool, logger, preset, taskList, noHandleSignals: true })

  return {
    settings:
      `\`addJobs()\` of 5,000 over 2 connections; worker pools in one process: ${pools}, \`concurrentJobs: 24\`, ` +
      `\`localQueue: { size: ${queue} }\`, \`completeJobBatchDelay: 0\`, \`failJobBatchDelay: 0\`; no log; ` +
      '`run()` for latency',
    enqueue: count =>
      enqueueInBatches({ count, batch: 5000, atOnce: 2 }, payloads =>
        utils.addJobs(payloads.map(payload => ({ identifier: 'noop', payload }))),
      ),
    // runOnce ends when nothing is left and the last batch of completions is written.
    async drain(count) {
      let ran = 0
      const noop = async (_payload: unknown) => void ran++
      await Promise.all(Array.from({ length: pools }, () => runOnce(worker({ noop }))))
      if (ran !== count) throw new Error(`${ran} handlers ran for ${count} tasks`)
    },
    rest: async () => {},
    async latency(samples) {
      const { handler, sample } = latencyProbe()
      const runner = await run({ ...worker({ noop: handler }), parsedCronItems: [] })
      const took = await sample(samples, () => utils.addJob('noop', { one: 1 }))
      await runner.stop()
      return took
    },
    async left() {
      const { rows } = await pgPool.query('select count(*)::int as left from graphile_worker._private_jobs')
      return rows[0].left
    },
    clear: async () => void (await pgPool.query('truncate graphile_worker._private_jobs')),
    async close() {
      await utils.release()
      await pgPool.end()
    },
  }
}

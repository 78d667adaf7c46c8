import { Queue, Worker } from 'bullmq'
import { type Contender, countdown, enqueueInBatches, latencyProbe } from '../contender.ts'
import { startRedis } from '../redis.ts'

const name = 'bench'

export async function openContender(): Promise<Contender> {
  const redis = await startRedis()
  const connection = { host: '127.0.0.1', port: redis.port, maxRetriesPerRequest: null }
  // Two objects for the same queue are two connections.
  const lanes = [new Queue(name, { connection }), new Queue(name, { connection })] as const
  const [queue] = lanes
  let worker: Worker | undefined

  const startWorker = async (handler: () => Promise<void>) => {
    worker = new Worker(name, handler, {
      connection,
      concurrency: 200,
      removeOnComplete: { count: 0 },
      autorun: false,
    })
    worker.on('error', error => console.error('bullmq:', error))
    await worker.waitUntilReady()
    return worker
  }
  const rest = async () => {
    await worker?.close()
    worker = undefined
  }

  return {
    settings:
      `on Redis ${redis.version}, appendonly with fsync every second (less durable than the others); ` +
      '`addBulk()` of 5,000 over 2 connections; a `Worker` with `concurrency: 200`, `removeOnComplete: { count: 0 }`',
    enqueue: count =>
      enqueueInBatches({ count, batch: 5000, atOnce: lanes.length }, (payloads, lane) =>
        lanes[lane]!.addBulk(payloads.map(data => ({ name: 'noop', data }))),
      ),
    async drain(count) {
      const { done, tick } = countdown(count)
      const started = await startWorker(async () => {})
      // The event comes when Redis has answered that the job is finished.
      started.on('completed', () => tick())
      void started.run()
      await done
    },
    rest,
    async latency(samples) {
      const { handler, sample } = latencyProbe()
      const started = await startWorker(handler)
      void started.run()
      const took = await sample(samples, () => queue.add('noop', { one: 1 }))
      await rest()
      return took
    },
    async left() {
      const counts = await queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized', 'failed')
      return Object.values(counts).reduce((sum, count) => sum + count, 0)
    },
    clear: () => queue.obliterate({ force: true }),
    async close() {
      await rest()
      await Promise.all(lanes.map(lane => lane.close()))
      await redis.stop()
    },
  }
}

import { PgBoss, type WorkOptions } from 'pg-boss'
import { type Contender, type ContenderEnv, countdown, enqueueInBatches, latencyProbe } from '../contender.ts'

const queue = 'bench'
const work: WorkOptions = {
  batchSize: 2000,
  localConcurrency: 2,
  burstWhenBatchFull: true,
  pollingIntervalSeconds: 0.5,
}

export async function openContender({ databaseUrl }: ContenderEnv): Promise<Contender> {
  // Without maintenance, which would run while others are measured.
  const quiet = { supervise: false, schedule: false, registerInstance: false, openTelemetry: { enabled: false } }
  const boss = new PgBoss({ connectionString: databaseUrl, max: 10, useListenNotify: true, ...quiet })
  boss.on('error', error => console.error('pg-boss:', error))
  await boss.start()
  await boss.createQueue(queue, { notify: true })

  return {
    settings:
      '`insert()` of 5,000 over 2 connections; `work()` with `batchSize: 2000`, `localConcurrency: 2`, ' +
      '`burstWhenBatchFull`; `useListenNotify` and a queue with `notify`; supervise, schedule and telemetry off',
    enqueue: count =>
      enqueueInBatches({ count, batch: 5000, atOnce: 2 }, payloads => {
        const jobs = payloads.map(data => ({ data }))
        return boss.insert(queue, jobs)
      }),
    async drain(count) {
      const { done, tick } = countdown(count)
      await boss.work(queue, work, async jobs => {
        for (const job of jobs) await handle(job.data)
        tick(jobs.length)
      })
      await done
      // A batch is completed after its handler has returned; this waits for the last ones.
      await boss.offWork(queue, { wait: true })
    },
    rest: async () => {},
    async latency(samples) {
      const { handler, sample } = latencyProbe()
      await boss.work(queue, work, handler)
      const took = await sample(samples, () => boss.send(queue, { one: 1 }))
      await boss.offWork(queue, { wait: true })
      return took
    },
    async left() {
      const { rows } = await boss
        .getDb()
        .executeSql(`select count(*)::int as left from pgboss.job where state <> 'completed'`)
      return rows[0].left
    },
    // Its own delete would leave dead rows, which slow down the next round.
    clear: async () => void (await boss.getDb().executeSql('truncate pgboss.job cascade')),
    close: () => boss.stop({ graceful: false }),
  }
}

async function handle(_data: unknown): Promise<void> {}

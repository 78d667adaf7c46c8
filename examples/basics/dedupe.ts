/** Queues a task only once, however often it is requested. */
import { defineTask, pawl, startWorker } from 'pawl'

const sync = defineTask({
  type: 'sync-account',
  dedupeSeconds: 60, // for a minute after it has ended, the task still counts
  handler: (account: string) => `${account} is up to date`,
})

const engine = await pawl()

const first = await engine.enqueue(sync, 'ada', { dedupeKey: 'sync-ada' })
const second = await engine.enqueue(sync, 'ada', { dedupeKey: 'sync-ada' })
console.log('While it waits:', second.deduplicated, second.id === first.id)

const worker = startWorker(engine, [sync])
console.log(await first.result())

const third = await engine.enqueue(sync, 'ada', { dedupeKey: 'sync-ada' })
console.log('After its end:', third.deduplicated, third.state)

await worker.stop()
await engine.close()

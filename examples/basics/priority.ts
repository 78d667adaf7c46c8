/** Runs urgent tasks first. */
import { defineTask, pawl, startWorker } from 'pawl'

const send = defineTask({ type: 'send', handler: (mail: string) => console.log('sent', mail) })

const engine = await pawl()

const newsletter = await engine.enqueue(send, 'newsletter', { priority: -10 })
await engine.enqueue(send, 'receipt')
await engine.enqueue(send, 'password reset', { priority: 10 })

const worker = startWorker(engine, [send], { concurrency: 1 })
await newsletter.result()

await worker.stop()
await engine.close()

/** Runs a task later: after a number of seconds, or at a moment. */
import { defineTask, pawl, startWorker } from 'pawl'

const remind = defineTask({ type: 'remind', handler: (text: string) => `Reminder: ${text}` })

const engine = await pawl()
const worker = startWorker(engine, [remind])

const soon = await engine.enqueue(remind, 'stand up', { runInSeconds: 2 })
const tomorrow = new Date(Date.now() + 86_400_000)
const later = await engine.enqueue(remind, 'water the plants', { runAt: tomorrow })

console.log(await soon.result())
console.log('The other one is', (await engine.task(later.id)).state)

await worker.stop()
await engine.close()

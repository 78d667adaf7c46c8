/** Reports progress, and continues after a failure where the last attempt stopped. */
import { defineTask, pawl, startWorker } from 'pawl'

const pages = ['a', 'b', 'c', 'd']

const load = defineTask({
  type: 'load',
  retry: { attempts: 2, delaySeconds: 0 },
  async handler(_: null, ctx) {
    const done = (ctx.lastCheckpoint as { done: number } | null)?.done ?? 0
    for (const [index, page] of pages.entries()) {
      if (index < done) continue
      if (page === 'c' && ctx.attempt === 1) throw new Error('the connection was closed')
      console.log(`attempt ${ctx.attempt} loads ${page}`)
      ctx.progress({ done: index + 1, of: pages.length })
      await ctx.checkpoint({ done: index + 1 }) // stored before the next page begins, together with the progress
    }
  },
})

const engine = await pawl()
const worker = startWorker(engine, [load])

const task = await engine.enqueue(load, null)
await task.result()
console.log((await engine.task(task.id)).progress)

await worker.stop()
await engine.close()

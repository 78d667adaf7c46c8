/** Cancels a task that runs. The handler is told through `ctx.signal`. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineTask, pawl, startBabysitter, startWorker, TaskFailed } from 'pawl'

let begin = () => {}
const hasBegun = new Promise<void>(resolve => {
  begin = resolve
})

const render = defineTask({
  type: 'render',
  heartbeatSeconds: 1, // a cancel reaches the handler with the next heartbeat
  async handler(film: string, ctx) {
    begin()
    await sleep(3_600_000, undefined, { signal: ctx.signal })
    return film
  },
})

const engine = await pawl()
const babysitter = startBabysitter(engine)
const worker = startWorker(engine, [render])

const task = await engine.enqueue(render, 'holiday.mp4')
await hasBegun
await engine.cancel(task.id, { reason: 'wrong film' })
const error = await task.result().catch(error => error)
if (error instanceof TaskFailed) console.log('The task is', error.state)

await worker.stop()
await babysitter.stop()
await engine.close()

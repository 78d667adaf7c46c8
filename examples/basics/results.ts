/** Waits for what a task returned, or for the error that it ended with. */
import { defineTask, GiveUp, pawl, startWorker, TaskFailed } from 'pawl'

const divide = defineTask({
  type: 'divide',
  handler: ({ a, b }: { a: number; b: number }) => {
    if (b === 0) throw new GiveUp('cannot divide by zero')
    return { quotient: a / b }
  },
})

const engine = await pawl()
const worker = startWorker(engine, [divide])

const good = await engine.enqueue(divide, { a: 6, b: 3 })
const { quotient } = await good.result({ timeoutSeconds: 30 }) // `quotient` is a number: its type comes from the handler
console.log('6 / 3 =', quotient)

const bad = await engine.enqueue(divide, { a: 6, b: 0 })
try {
  await bad.result()
} catch (error) {
  if (!(error instanceof TaskFailed)) throw error
  console.log(`It ${error.state}:`, error.message)
}

await worker.stop()
await engine.close()

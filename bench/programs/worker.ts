// A worker process that runs `noop` tasks until it gets a signal to stop.
import { defineTask, pawl, startWorker } from '../../dist/index.js'

const [url, kind, seconds] = process.argv.slice(2)
const engine = await pawl({ database: url!, migrate: false })
const handler =
  kind === 'slow' ? () => new Promise<void>(resolve => setTimeout(resolve, Number(seconds) * 1000)) : async () => {}
const task = defineTask({ type: kind === 'slow' ? 'slow' : 'noop', handler })
const settings = kind === 'slow' ? { concurrency: 20 } : { concurrency: 200, buffer: 1800 }
const worker = startWorker(engine, [task], settings)
process.stdout.write('ready\n')
process.on('SIGTERM', async () => {
  await worker.stop()
  await engine.close()
  process.stdout.write(`${JSON.stringify({ rss: process.memoryUsage().rss, heap: process.memoryUsage().heapUsed })}\n`)
  process.exit(0)
})

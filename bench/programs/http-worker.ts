// A worker process over HTTP. The bench starts and stops it by messages, and gets its progress.
import { connect, defineTask, startWorker, type Worker } from '../../dist/index.js'

const [server] = process.argv.slice(2)
const client = connect({ server: server! })
let ran = 0
let worker: Worker | undefined
const noop = defineTask({ type: 'noop', handler: async () => void ran++ })

process.on('message', async (word: 'go' | 'rest') => {
  if (word === 'go') {
    ran = 0
    worker = startWorker(client, [noop], { concurrency: 200, buffer: 800, waitSeconds: 5 })
  } else {
    await worker?.stop()
    worker = undefined
    // From now on, tasks count for the next round.
    ran = 0
    process.send!({ rested: true })
  }
})
setInterval(() => process.connected && process.send!({ ran, inHand: worker?.inHand() ?? 0 }), 20)
process.on('disconnect', () => process.exit(0))
// The bench may end while a message is being sent.
process.on('error', () => process.exit(0))

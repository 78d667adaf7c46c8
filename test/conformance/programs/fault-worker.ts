/** A worker with a fault, named by its only argument. */
import { connect } from '../../../src/client/client.ts'
import { startWorker } from '../../../src/worker/worker.ts'
import { conformanceTask } from './conformance-task.ts'
import { faults, withFault } from './faults.ts'

const planted = faults[process.argv[2]!]
if (planted === undefined) throw new Error(`there is no fault "${process.argv[2]}"`)

const { PAWL_SERVER, PAWL_KEY, PAWL_QUEUES, PAWL_DRAIN_SECONDS } = process.env
const client = connect({ server: PAWL_SERVER!, key: PAWL_KEY! })
const worker = startWorker(withFault(client, planted), [conformanceTask], {
  queues: PAWL_QUEUES!.split(','),
  drainSeconds: planted.drainSeconds ?? Number(PAWL_DRAIN_SECONDS),
})
const { deafMs = 0 } = planted
process.once('SIGTERM', () => {
  if (deafMs < 0) process.exit(0)
  setTimeout(() => void worker.stop(), deafMs)
})

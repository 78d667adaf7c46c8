/** The worker of this package, as a program that the conformance suite can start. */
import { connect } from '../../../src/client/client.ts'
import { startWorker } from '../../../src/worker/worker.ts'
import { conformanceTask } from './conformance-task.ts'

const { PAWL_SERVER, PAWL_KEY, PAWL_QUEUES, PAWL_DRAIN_SECONDS } = process.env
const worker = startWorker(connect({ server: PAWL_SERVER!, key: PAWL_KEY! }), [conformanceTask], {
  queues: PAWL_QUEUES!.split(','),
  drainSeconds: Number(PAWL_DRAIN_SECONDS),
})
process.once('SIGTERM', () => void worker.stop())

// Bundled by Temporal's worker.
import { proxyActivities } from '@temporalio/workflow'

const { noop } = proxyActivities({ startToCloseTimeout: '1 minute' })

export async function oneActivity(payload) {
  await noop(payload)
}

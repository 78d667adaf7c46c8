/** A server, a client of Marie, and an executor that the test controls. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { ReportedOutcome } from '../../src/kernel/decide.ts'
import type { ClaimedTask } from '../../src/protocol/tasks/sync.ts'
import { marieClient } from './marie.ts'
import { type Served, type ServedOptions, served } from './served.ts'

export type MarieRig = Awaited<ReturnType<typeof marieRig>>

export async function marieRig(t: TestContext, options: ServedOptions = {}) {
  const run: Served = await served(t, options)
  const marie = marieClient(`${run.server.url}/dialects/marie`)
  const rig = {
    ...run,
    marie,
    /** Submits a job that must be accepted. Returns its id. */
    async submit(body: Record<string, unknown>): Promise<string> {
      const { http, status, result, parameters, message } = await marie.invoke(body)
      assert.deepEqual([http, status], [200, 'OK'], message)
      assert.deepEqual(
        [result.state, parameters],
        ['CREATED', { ...parameters, job_id: result.id, status: 'submitted' }],
      )
      return result.id
    },
    /** Claims for an executor of these queues. */
    async dispatch(...queues: string[]): Promise<readonly ClaimedTask[]> {
      return (await run.client.sync({ worker: 'executor', queues, claim: 100 })).claimed
    },
    async report(tasks: readonly ClaimedTask[], outcome: ReportedOutcome): Promise<void> {
      const error = { message: 'Connection timeout' }
      const more = outcome === 'failed' ? { error } : outcome === 'skipped' ? { reason: 'branch_not_taken' } : {}
      const settled = tasks.map(({ id, epoch }) => ({ id, epoch, outcome, ...more }))
      assert.deepEqual((await run.client.sync({ worker: 'executor', settled })).refused, [])
    },
    /** Processes all jobs of a queue. Returns their number. */
    async work(queue: string, outcome: ReportedOutcome = 'succeeded'): Promise<number> {
      const tasks = await rig.dispatch(queue)
      if (tasks.length > 0) await rig.report(tasks, outcome)
      return tasks.length
    },
  }
  return rig
}

import type { TestContext } from 'node:test'
import { sync } from '../../src/engine/tasks/sync.ts'
import type { SyncAnswer, SyncRequest } from '../../src/protocol/tasks/sync.ts'
import type { Fresh } from './fresh.ts'

/**
 * Starts a sync that finds nothing, and returns once it waits for work. Timers are stopped, so nothing is polled: only
 * a notification of new work can end the wait. `between` runs after it has polled and before it waits.
 */
export async function startWaiting(
  t: TestContext,
  { engine }: Pick<Fresh, 'engine'>,
  request: Partial<SyncRequest>,
  { between = async () => {}, signal }: { between?: () => Promise<unknown>; signal?: AbortSignal } = {},
): Promise<{ answer: Promise<SyncAnswer> }> {
  const { wake } = engine.context
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let answer: Promise<SyncAnswer> | undefined
  await new Promise<void>((resolve, reject) => {
    const wait: typeof wake.wait = async (...asked) => {
      await between()
      const ended = wake.wait(...asked)
      resolve()
      return ended
    }
    const context = { ...engine.context, wake: { ...wake, wait } }
    answer = sync(context, { worker: 'w', claim: 1, waitSeconds: 60, ...request }, signal)
    answer.catch(reject)
  })
  return { answer: answer! }
}

import { loseLease } from '../../kernel/decide.ts'
import { Problem } from '../../kernel/problem.ts'
import type { LostWorkerView } from '../../protocol/admin/operate.ts'
import type { LoseWorkerCall } from '../../protocol/call-options.ts'
import { loseWorkerFields } from '../../protocol/fields.ts'
import { faultOf, text } from '../../schema/check.ts'
import { findLeasesOfWorker } from '../../store/tasks/sessions.ts'
import { lockTasks, stagesOfUpdates, type TaskUpdate, writeTaskUpdates } from '../../store/tasks/task-updates.ts'
import { checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { transact } from '../unit-of-work.ts'

/**
 * Ends all leases of a worker as if they had run out. Safe if the worker lives after all: what it reports from then on is
 * refused, because its epochs are over. A task that it reports at the same moment is decided by whoever locks it first.
 */
export async function loseWorker(
  context: Context,
  worker: string,
  call: LoseWorkerCall & { readonly holder?: string } = {},
): Promise<LostWorkerView> {
  const must = faultOf(text(200), worker)
  if (must !== undefined) throw new Problem('OPTION_INVALID', { at: 'loseWorker', option: 'worker', must })
  checkOptions(call, loseWorkerFields, 'loseWorker')
  const { actor = 'operator', reason = 'The worker was declared lost.' } = call
  const asked = ['lose worker', worker, reason]
  return transact(context, call, asked, async (tx, after) => {
    const held = await findLeasesOfWorker(tx, worker)
    const owners = [...new Set(held.map(({ owner }) => owner))]
    if (owners.length > 1) throw new Problem('WORKER_AMBIGUOUS', { worker, workers: owners.slice(0, 20) })
    const leases = new Map(held.map(({ id, epoch }) => [id, epoch]))
    const tasks = await lockTasks(tx, [...leases.keys()])
    const rulings: TaskUpdate[] = tasks.flatMap(task => {
      const isHeld = task.state === 'assigned' || task.state === 'running'
      if (!isHeld || task.epoch !== leases.get(task.id)) return []
      const verdict = loseLease(task, { charged: true, why: reason })
      return verdict.ok ? [{ task, steps: verdict.steps, patch: verdict.patch }] : []
    })
    await writeTaskUpdates(tx, rulings, actor)
    after.wake(rulings.map(({ task }) => task.queue))
    after.rollUp(stagesOfUpdates(rulings))
    return { worker: owners[0] ?? worker, tasks: rulings.map(({ task }) => task.id) }
  })
}

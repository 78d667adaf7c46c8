import type { Context } from '../engine/context.ts'
import { rollUp } from '../engine/jobs/roll-up.ts'
import { splitting } from '../engine/split.ts'
import type { Verdict } from '../kernel/decide.ts'
import {
  type LockedTask,
  lockTasks,
  stagesOfUpdates,
  type TaskUpdate,
  writeTaskUpdates,
} from '../store/tasks/task-updates.ts'
import { tellUnruly, type Unruly } from './tell-unruly.ts'

/**
 * Locks what a chore has found, looks again, and writes down what the kernel decides. Tasks that someone else has
 * locked are left to them, and one that cannot be written is counted and never holds up the others.
 */
export async function judge(
  context: Context,
  ids: readonly string[],
  decide: (task: LockedTask) => Verdict | undefined,
): Promise<{ moved: number; failed: number }> {
  const { sql, wake } = context
  const unruly: Unruly[] = []
  const run = (batch: readonly string[]) =>
    sql.begin(async tx => {
      const rulings: TaskUpdate[] = []
      for (const task of await lockTasks(tx, batch, 'pass over')) {
        const verdict = decide(task)
        if (verdict?.ok) rulings.push({ task, steps: verdict.steps, patch: verdict.patch })
      }
      await writeTaskUpdates(tx, rulings, 'babysitter')
      return rulings
    })
  const rulings = await splitting<string, TaskUpdate | undefined>(ids, run, (id, error) => {
    unruly.push({ id, error })
    return undefined
  })
  await tellUnruly(context, 'task', unruly)
  const written = rulings.filter(ruling => ruling !== undefined)
  if (written.length > 0) wake.tell([...new Set(written.map(({ task }) => task.queue))])
  await rollUp(context, stagesOfUpdates(written))
  return { moved: written.length, failed: unruly.length }
}

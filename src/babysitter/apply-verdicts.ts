import type { Context } from '../engine/context.ts'
import { advanceJobsOfStages } from '../engine/jobs/advance-job.ts'
import { splitOnFailure } from '../engine/retry.ts'
import type { Verdict } from '../kernel/decide.ts'
import {
  type LockedTask,
  lockTasks,
  stagesOfUpdates,
  type TaskUpdate,
  writeTaskUpdates,
} from '../store/tasks/task-updates.ts'
import { logFailures, type WriteFailure } from './log-failures.ts'

/**
 * Locks the tasks that a chore found, checks them again, and writes down the verdicts. Tasks locked by somebody else
 * are left alone. A task that cannot be written is counted and never holds up the others.
 */
export async function applyVerdicts(
  context: Context,
  ids: readonly string[],
  decide: (task: LockedTask) => Verdict | undefined,
): Promise<{ moved: number; failed: number }> {
  const { sql, wake } = context
  const failures: WriteFailure[] = []
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
  const rulings = await splitOnFailure<string, TaskUpdate | undefined>(ids, run, (id, error) => {
    failures.push({ id, error })
    return undefined
  })
  await logFailures(context, 'task', failures)
  const written = rulings.filter(ruling => ruling !== undefined)
  if (written.length > 0) wake.notify([...new Set(written.map(({ task }) => task.queue))])
  await advanceJobsOfStages(context, stagesOfUpdates(written))
  return { moved: written.length, failed: failures.length }
}

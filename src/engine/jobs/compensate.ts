import { newId } from '../../kernel/id.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { readSucceededTasks } from '../../store/jobs/errands.ts'
import { readStages } from '../../store/jobs/jobs.ts'
import { insertStages } from '../../store/jobs/new-job.ts'
import type { LockedJob } from './locked-job.ts'

/**
 * Creates the stages that compensate for tasks that succeeded: the last stage first, with one task per succeeded task,
 * the latest first. They run like any other tasks, but no failure stops them: each stage begins when the previous one
 * has ended.
 */
export async function planCompensation(tx: Sql, locked: LockedJob): Promise<void> {
  await locked.write(tx)
  const { job } = locked
  let ordinal = Math.max(...locked.stages.map(stage => stage.ordinal))
  const done = locked.stages.filter(({ kind, undoable, plan }) => kind === 'work' && undoable > 0 && plan.compensate)
  for (const stage of done.toReversed()) {
    const { task, queue } = stage.plan.compensate!
    const elements = (await readSucceededTasks(tx, stage.id)).map(({ id, payload, output }) => ({
      taskId: id,
      payload,
      output,
    }))
    ordinal += 1
    const plan = {
      ...stage.plan,
      task,
      queue,
      needs: [],
      join: 'done' as const,
      when: null,
      forEach: null,
      gate: null,
      compensate: null,
      single: false,
      failFast: false,
      onFailure: 'continue' as const,
      parallelism: null,
      payloads: [],
    }
    await insertStages(tx, job, [
      {
        id: newId(),
        ordinal,
        kind: 'undo',
        undoes: stage.id,
        plan,
        open: 'sealed',
        fan: elements,
        total: 0,
        blocked: 0,
      },
    ])
  }
  const knownIds = new Set(locked.stages.map(({ id }) => id))
  const all = await readStages(tx, job.id)
  locked.stages.push(...all.filter(({ id }) => !knownIds.has(id)))
}

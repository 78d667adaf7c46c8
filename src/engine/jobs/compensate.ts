import { newId } from '../../kernel/id.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { readSucceededTasks } from '../../store/jobs/errands.ts'
import { readStages } from '../../store/jobs/jobs.ts'
import { insertStages } from '../../store/jobs/new-job.ts'
import type { JobBook } from './locked-job.ts'

/**
 * Makes the stages that undo what had succeeded: the last stage first, one task for each task that succeeded, its
 * latest first. They are tasks like any other, but nothing stops them: each begins when the one before it has ended.
 */
export async function planUndoing(tx: Sql, book: JobBook): Promise<void> {
  await book.write(tx)
  const { job } = book
  let ordinal = Math.max(...book.stages.map(stage => stage.ordinal))
  const done = book.stages.filter(({ kind, undoable, plan }) => kind === 'work' && undoable > 0 && plan.compensate)
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
  const known = new Set(book.stages.map(({ id }) => id))
  const all = await readStages(tx, job.id)
  book.stages.push(...all.filter(({ id }) => !known.has(id)))
}

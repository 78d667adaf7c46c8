/** A task that belongs to a job is changed under the job's lock, and the job is driven on in the same transaction. */
import { jobLifecycle } from '../../kernel/job.ts'
import { isFinal, movesOpenTo } from '../../kernel/lifecycle.ts'
import { Problem } from '../../kernel/problem.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { findJobOf } from '../../store/jobs/read-jobs.ts'
import type { TaskUpdate } from '../../store/tasks/task-updates.ts'
import type { AfterCommit } from '../after-commit.ts'
import { driveOnce } from '../jobs/drive.ts'
import type { JobBook } from '../jobs/locked-job.ts'
import { canRevive, reviveStageOf } from '../jobs/revive.ts'

/** Does `work` on a task; if it is of a job, with the job locked before it. What follows for the job is done at once. */
export async function withItsJob<T>(
  tx: Sql,
  after: AfterCommit,
  taskId: string,
  actor: string,
  work: (book: JobBook | undefined) => Promise<T>,
): Promise<T> {
  return withJob(tx, after, (await findJobOf(tx, 'task', taskId)) ?? null, actor, work)
}

/** The same, where the job is known; null: there is none. */
export async function withJob<T>(
  tx: Sql,
  after: AfterCommit,
  jobId: string | null,
  actor: string,
  work: (book: JobBook | undefined) => Promise<T>,
): Promise<T> {
  if (jobId === null) return work(undefined)
  return driveOnce(tx, after, jobId, actor, async book => {
    const done = await work(book)
    await book.recount(tx)
    for (const stage of book.stages) {
      if (stage.badBefore > stage.bad) book.setStage(stage, { badBefore: stage.bad })
    }
    return done
  })
}

/** A task that comes back brings back its stage and job, if they have ended; until its stage is open it is blocked. */
export function placed(book: JobBook | undefined, ruling: TaskUpdate): TaskUpdate {
  const { task, steps, patch } = ruling
  const stage = book?.stages.find(({ id }) => id === task.stageId)
  if (book === undefined || stage === undefined || patch.opensRound !== true) return ruling
  if (book.job.compensated) throw new Problem('JOB_COMPENSATED', { id: book.job.id })
  const isStopping = book.job.endsAs !== null && !isFinal(jobLifecycle, book.job.state)
  if (isStopping) throw refused(ruling)
  if (isFinal(stageLifecycle, stage.state)) {
    if (!canRevive(stage)) throw refused(ruling)
    reviveStageOf(book, stage, steps[0]!.cause)
  } else if (stage.endsAs !== null) throw refused(ruling)
  if (stage.state === 'pending' || stage.state === 'running') return ruling
  return { ...ruling, steps: [{ ...steps[0]!, to: 'blocked' }] }
}

function refused({ task }: TaskUpdate): Problem {
  const possible = movesOpenTo(taskLifecycle, task.state, 'operator')
  return new Problem('MOVE_REFUSED', { id: task.id, state: task.state, why: 'its stage is being stopped', possible })
}

/** Changes a task of a job under the job's lock, and advances the job in the same transaction. */
import { jobLifecycle } from '../../kernel/job.ts'
import { isFinal, movesOpenTo } from '../../kernel/lifecycle.ts'
import { Problem } from '../../kernel/problem.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import type { Sql } from '../../store/driver/sql.ts'
import type { TaskUpdate } from '../../store/tasks/task-updates.ts'
import type { AfterCommit } from '../after-commit.ts'
import { advanceInTransaction } from '../jobs/advance-job.ts'
import type { LockedJob } from '../jobs/locked-job.ts'
import { canRevive, reviveStageOfTask } from '../jobs/revive.ts'

/** Runs `work` with the job locked, if there is one, and then advances the job. */
export async function withLockedJob<T>(
  tx: Sql,
  after: AfterCommit,
  jobId: string | null,
  actor: string,
  work: (locked: LockedJob | undefined) => Promise<T>,
): Promise<T> {
  if (jobId === null) return work(undefined)
  return advanceInTransaction(tx, after, jobId, actor, async locked => {
    const done = await work(locked)
    await locked.recount(tx)
    for (const stage of locked.stages) {
      if (stage.badBefore > stage.bad) locked.setStage(stage, { badBefore: stage.bad })
    }
    return done
  })
}

/** Revives a task's stage and job if they have ended. The task stays blocked until its stage opens. */
export function reviveInJob(locked: LockedJob | undefined, ruling: TaskUpdate): TaskUpdate {
  const { task, steps, patch } = ruling
  const stage = locked?.stages.find(({ id }) => id === task.stageId)
  if (locked === undefined || stage === undefined || patch.opensRound !== true) return ruling
  if (locked.job.compensated) throw new Problem('JOB_COMPENSATED', { id: locked.job.id })
  const isStopping = locked.job.endsAs !== null && !isFinal(jobLifecycle, locked.job.state)
  if (isStopping) throw stageStopping(ruling)
  if (isFinal(stageLifecycle, stage.state)) {
    if (!canRevive(stage)) throw stageStopping(ruling)
    reviveStageOfTask(locked, stage, steps[0]!.cause)
  } else if (stage.endsAs !== null) throw stageStopping(ruling)
  if (stage.state === 'pending' || stage.state === 'running') return ruling
  return { ...ruling, steps: [{ ...steps[0]!, to: 'blocked' }] }
}

function stageStopping({ task }: TaskUpdate): Problem {
  const possible = movesOpenTo(taskLifecycle, task.state, 'operator')
  return new Problem('MOVE_REFUSED', { id: task.id, state: task.state, why: 'its stage is being stopped', possible })
}

import { isFinal } from '../../kernel/lifecycle.ts'
import { queueOfStage } from '../../kernel/plan.ts'
import { Problem } from '../../kernel/problem.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import type { SpawnedTask } from '../../protocol/tasks/sync.ts'
import type { Sql } from '../../store/driver/sql.ts'
import type { Context } from '../context.ts'
import type { JobBook } from '../jobs/locked-job.ts'
import { addTasksTo } from '../jobs/stage-control.ts'

export interface Spawn {
  /** The stage of the task that makes them. */
  readonly ownId: string
  readonly spawned: readonly SpawnedTask[]
  /** The queues that the key of the one who says so is for; null: all of them. */
  readonly within: readonly string[] | null
}

/** Tasks that a task makes: in its own stage, which cannot have ended before it, or in a later one that is open. */
export async function spawnInto(
  context: Context,
  tx: Sql,
  book: JobBook,
  { ownId, spawned, within }: Spawn,
): Promise<void> {
  const own = book.stages.find(({ id }) => id === ownId)!
  for (const name of new Set(spawned.map(({ stage }) => stage ?? own.name))) {
    const stage = name === own.name ? own : book.stages.find(each => each.name === name && each.kind === 'work')
    const refuse = (why: string) => new Problem('SPAWN_REFUSED', { stage: name, why })
    if (stage === undefined) throw refuse('the job has no stage of this name')
    if (stage !== own && stage.ordinal < own.ordinal) throw refuse('it is not a later stage')
    if (stage !== own && stage.open === 'sealed') throw refuse('it is sealed')
    // Of the item alone: the rest of what its worker reports is none of its concern.
    const queue = queueOfStage(stage)
    if (within?.includes(queue) === false) throw new Problem('KEY_REFUSED', { queues: [queue], may: within })
    // What is being stopped takes nothing new; that its task spawned is in its output, if it matters.
    if (stage.endsAs !== null) continue
    if (isFinal(stageLifecycle, stage.state)) throw refuse('it has ended')
    const tasks = spawned
      .filter(each => (each.stage ?? own.name) === name)
      .map(({ type, payload }) => ({ ...(type !== undefined && { type }), payload }))
    await addTasksTo(context, tx, book, stage, tasks, 'engine')
  }
}

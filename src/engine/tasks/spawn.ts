/** Tasks that a task of a job spawns. */
import { isFinal } from '../../kernel/lifecycle.ts'
import { queueOfStage } from '../../kernel/plan.ts'
import { Problem } from '../../kernel/problem.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import { checkPayloads } from '../../protocol/tasks/new-task.ts'
import type { SettledTask, SpawnedTask } from '../../protocol/tasks/sync.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { readTypesOfStages } from '../../store/jobs/read-jobs.ts'
import type { Context } from '../context.ts'
import type { LockedJob } from '../jobs/locked-job.ts'
import { addTasksToStage, checkTasks } from '../jobs/stage-control.ts'

/** Schemas in code are users' code, which may wait for anything. They run before the job is locked. */
export async function checkSpawned({ types }: Context, sql: Sql, { id, spawn = [] }: SettledTask): Promise<void> {
  if (types.known.size === 0) return
  const stages = spawn.every(({ type }) => type !== undefined) ? [] : await readTypesOfStages(sql, id)
  const typeOf = (stage: string | undefined) =>
    stages.find(({ name, isOwn }) => (stage === undefined ? isOwn : name === stage))?.type ?? ''
  const tasks = spawn.map(({ type, stage, payload }) => ({ type: type ?? typeOf(stage), payload }))
  await checkPayloads(types.known, tasks)
}

interface Spawn {
  /** The stage of the spawning task. */
  readonly ownId: string
  readonly spawned: readonly SpawnedTask[]
  /** The queues of the reporter's key; null: all queues. */
  readonly allowedQueues: readonly string[] | null
}

/** Adds spawned tasks: to the task's own stage, which is still open, or to a later open stage. */
export async function addSpawned(
  context: Context,
  tx: Sql,
  locked: LockedJob,
  { ownId, spawned, allowedQueues }: Spawn,
): Promise<void> {
  const own = locked.stages.find(({ id }) => id === ownId)!
  for (const name of new Set(spawned.map(({ stage }) => stage ?? own.name))) {
    const stage = name === own.name ? own : locked.stages.find(each => each.name === name && each.kind === 'work')
    const refuse = (why: string) => new Problem('SPAWN_REFUSED', { stage: name, why })
    if (stage === undefined) throw refuse('the job has no stage of this name')
    if (stage !== own && stage.ordinal < own.ordinal) throw refuse('it is not a later stage')
    if (stage !== own && stage.open === 'sealed') throw refuse('it is sealed')
    // Applies to this item only, not to the other reports of the worker.
    const queue = queueOfStage(stage)
    if (allowedQueues?.includes(queue) === false)
      throw new Problem('KEY_REFUSED', { queues: [queue], may: allowedQueues })
    // A stopping stage takes no new tasks. The task's output records what it spawned, if that matters.
    if (stage.endsAs !== null) continue
    if (isFinal(stageLifecycle, stage.state)) throw refuse('it has ended')
    const tasks = spawned
      .filter(each => (each.stage ?? own.name) === name)
      .map(({ type, payload }) => ({ ...(type !== undefined && { type }), payload }))
    await addTasksToStage(context, tx, locked, stage, checkTasks(context, stage, tasks), 'engine')
  }
}

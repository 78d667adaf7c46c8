import { randomBytes } from 'node:crypto'
import { newId } from '../../src/kernel/id.ts'
import { statesOf } from '../../src/kernel/lifecycle.ts'
import { type TaskState, taskLifecycle } from '../../src/kernel/task.ts'
import type { HeldTask, SettledTask } from '../../src/protocol/tasks/sync.ts'
import type { EventView, TaskOptions } from '../../src/protocol/tasks/tasks.ts'
import type { Sql } from '../../src/store/driver/sql.ts'
import { createLanes } from '../../src/store/flow/task-lanes.ts'
import { lockTasks, writeTaskUpdates } from '../../src/store/tasks/task-updates.ts'
import type { Fresh } from './fresh.ts'

export const everyState: readonly TaskState[] = statesOf(taskLifecycle)

/** The report with which a worker ends a task in each state. */
const endings: Partial<Record<TaskState, Omit<SettledTask, 'id' | 'epoch'>>> = {
  retrying: { outcome: 'released' },
  succeeded: { outcome: 'succeeded', output: 'done' },
  skipped: { outcome: 'skipped', reason: 'nothing to do' },
  failed: { outcome: 'failed', error: { message: 'no', permanent: true } },
  cancelled: { outcome: 'cancelled' },
  dead_lettered: { outcome: 'dead_lettered', error: { message: 'odd', reasonCode: 'parse_error' } },
}

/** A new task in a queue of its own, brought into a state by the moves that lead there. */
export async function taskIn(
  { engine, sql }: Fresh,
  state: TaskState,
  options: TaskOptions & { type?: string; payload?: unknown } = {},
): Promise<HeldTask & { readonly queue: string }> {
  const { type = 'work', payload = null, ...rest } = options
  const queue = options.queue ?? `q-${randomBytes(4).toString('hex')}`
  if (state === 'blocked') return { id: await blockedTask(sql, type, queue), epoch: 0, queue }
  const { id } = await engine.enqueue(type, payload, { ...rest, queue })
  if (state === 'queued') return { id, epoch: 0, queue }
  if (state === 'expired') {
    await sql.begin(async tx => {
      const [task] = await lockTasks(tx, [id])
      await writeTaskUpdates(
        tx,
        [{ task: task!, steps: [{ to: 'expired', cause: 'time_to_live' }], patch: {} }],
        'babysitter',
      )
    })
    return { id, epoch: 0, queue }
  }
  await engine.sync({ worker: 'w', queues: [queue], claim: 1 })
  const held = { id, epoch: 1 }
  if (state === 'running') await engine.sync({ worker: 'w', started: [held] })
  const ending = endings[state]
  if (ending !== undefined) await engine.sync({ worker: 'w', settled: [{ ...held, ...ending }] })
  return { ...held, queue }
}

/** A blocked task without a stage, which the engine never creates. */
async function blockedTask(sql: Sql, type: string, queue: string): Promise<string> {
  const id = newId()
  await createLanes(sql, [{ queue, type, priority: 0 }])
  await sql`
    with made as (
      insert into pawl.task (id, lane_id, seq, round, epoch, state, type, run_at, payload, history)
      select ${id}::uuid, lane.id, 1, 1, 0, 'blocked', ${type}, pawl.clock(), 'null',
             array[row(pawl.clock(), 0, 'blocked', null, 'engine', 'created', null)::pawl.step]
        from pawl.lane where queue = ${queue}
      returning id
    )
    insert into pawl.change (entity, ids, seqs) select 'task', array[id], array[1] from made`
  return id
}

/** Events in a short form: type, actor, reason. */
export async function storyOf({ engine }: Fresh, id: string): Promise<string[]> {
  const { items } = await engine.taskEvents(id)
  return items.map(({ type, actor, cause }: EventView) => `${type.replace('task.', '')} by ${actor}: ${cause}`)
}

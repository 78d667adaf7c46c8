import { isFinal, movesOpenTo } from '../../kernel/lifecycle.ts'
import { Problem } from '../../kernel/problem.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import { controlFields } from '../../protocol/fields.ts'
import { deleteTasks } from '../../store/tasks/task-chores.ts'
import { lockTasks } from '../../store/tasks/task-updates.ts'
import { checkId, checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { transact } from '../unit-of-work.ts'
import type { ControlCall } from './control.ts'

/** Deletes a task that has ended, with its events and logs, before its time. One of a job goes with its job. */
export async function deleteTask(context: Context, id: string, call: ControlCall = {}): Promise<void> {
  checkOptions(call, controlFields, 'delete')
  const taskId = checkId(id)
  await transact(context, call, ['task', taskId, 'delete'], async tx => {
    const [task] = await lockTasks(tx, [taskId])
    if (task === undefined) throw new Problem('TASK_NOT_FOUND', { id })
    if (task.jobId !== null) throw new Problem('TASK_OF_JOB', { id: taskId, job: task.jobId })
    if (!isFinal(taskLifecycle, task.state)) {
      const possible = movesOpenTo(taskLifecycle, task.state, 'operator')
      throw new Problem('MOVE_REFUSED', { id: taskId, state: task.state, move: 'delete', possible })
    }
    await deleteTasks(tx, [taskId])
    return null
  })
}

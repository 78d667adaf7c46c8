import { statesOf } from '../../kernel/lifecycle.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import { type Ask, type DialectRoute, good } from '../dialect.ts'
import { taskBody, taskWord } from './bodies.ts'
import { listed } from './lists.ts'
import { illegal, refused, unless } from './refusals.ts'
import { bodyOf, bodySchemas, idIn, queries, queryOf, typeIn } from './requests.ts'
import * as shapes from './shapes.ts'

const modified = { code: 'TASK_MODIFIED_SUCCESSFULLY' }
/** Its workers have no names: what they do is done by this one. */
const worker = 'jobnik'

const statesOfWord = (word: string) => statesOf(taskLifecycle).filter(state => taskWord(state) === word)

async function findTasks({ engine, query }: Ask) {
  const asked = queryOf(query, queries.tasks)
  const states = asked.status === undefined ? undefined : statesOfWord(asked.status)
  // CREATED is never seen here: a task is PENDING at once.
  if (states?.length === 0)
    return listed(
      asked,
      async () => ({ items: [], next: null, total: 0 }),
      async () => [],
    )
  const filter = {
    order: 'oldest' as const,
    ...(asked.stage_id !== undefined && { stageId: asked.stage_id }),
    ...(asked.stage_type !== undefined && { queue: asked.stage_type }),
    ...(asked.from_date !== undefined && { createdFrom: asked.from_date }),
    ...(asked.end_date !== undefined && { createdTo: asked.end_date }),
    ...(states !== undefined && { state: states }),
  }
  return listed(
    asked,
    paging => engine.tasks({ ...filter, ...paging }),
    async tasks => tasks.map(taskBody),
  )
}

async function dequeue(ask: Ask) {
  const { engine, call, signal } = ask
  const type = typeIn(ask)
  const { actor: name = worker } = call
  // A task that was not submitted as Jobnik's may ask for heartbeats, which its workers do not send.
  const [task] = await engine.take({ worker: name, queues: [type], heartbeatSeconds: null }, call, signal)
  if (task === undefined) return refused(404, 'TASK_NOT_FOUND')
  // A client that hung up will never report this task, unless it can ask for it again under its idempotency key.
  if (!signal.aborted || call.idempotencyKey !== undefined) return good(taskBody(task))
  await engine.release(task.id, task.epoch, { reason: 'hung_up' })
  return refused(404, 'TASK_NOT_FOUND')
}

/** Its reports name no lease: what is reported is the attempt that is under way, by the key that claimed it. */
async function report(ask: Ask) {
  const { engine } = ask
  const { status } = bodyOf<{ status: 'COMPLETED' | 'FAILED' }>(ask, 'taskStatus')
  const id = idIn(ask)
  return unless(
    ['MOVE_REFUSED', 'LEASE_LOST'],
    async () => {
      const settled =
        status === 'COMPLETED'
          ? engine.succeed(id, null)
          : engine.fail(id, null, { error: { message: 'The worker reported FAILED.' } })
      return good(taskBody(await settled))
    },
    ({ code, details }) =>
      code === 'MOVE_REFUSED'
        ? illegal('TASK', taskWord(details.state as TaskState), status)
        : refused(409, 'TASK_STATUS_UPDATE_FAILED'),
  )
}

export const taskRoutes: readonly DialectRoute[] = [
  {
    method: 'PATCH',
    path: '/v1/stages/{type}/tasks/dequeue',
    needs: 'work',
    says: 'Take the next task of a type of stage: of the job with the highest priority, then the oldest.',
    answers: shapes.task,
    handle: dequeue,
  },
  {
    method: 'GET',
    path: '/v1/tasks',
    needs: 'read',
    says: 'Tasks, oldest first; with a page, `{total, items}`.',
    query: Object.keys(queries.tasks),
    answers: shapes.listed(shapes.task),
    handle: findTasks,
  },
  {
    method: 'GET',
    path: '/v1/tasks/{id}',
    needs: 'read',
    says: 'A task.',
    answers: shapes.task,
    async handle(ask) {
      queryOf(ask.query, queries.none)
      return good(taskBody(await ask.engine.task(idIn(ask))))
    },
  },
  {
    method: 'PATCH',
    path: '/v1/tasks/{id}/user-metadata',
    needs: ['operate', 'work'],
    says: 'Replace the metadata of a task; a worker, that of a task that its key has claimed.',
    takes: bodySchemas.metadata,
    answers: shapes.done(modified.code),
    async handle(ask) {
      const metadata = bodyOf<Record<string, unknown>>(ask, 'metadata')
      await ask.engine.replaceTaskMetadata(idIn(ask), metadata, ask.call)
      return good(modified)
    },
  },
  {
    method: 'PUT',
    path: '/v1/tasks/{id}/status',
    needs: 'work',
    says: 'Report a task that is IN_PROGRESS: COMPLETED or FAILED, which is RETRIED while attempts are left.',
    takes: bodySchemas.taskStatus,
    answers: shapes.task,
    handle: report,
  },
]

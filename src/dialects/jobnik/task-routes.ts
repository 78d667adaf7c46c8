import { statesOf } from '../../kernel/lifecycle.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import { type DialectRequest, type DialectRoute, good, route } from '../dialect.ts'
import { unlessProblem } from '../kit/refusals.ts'
import { bodies, bodyOf, idIn, illegal, metadataRoute, queries, queryOf, refused, typeIn } from './requests.ts'
import { listed, listedSchema, sliced, taskBody, taskSchema } from './views.ts'
import { taskWord } from './words.ts'

/** Jobnik's workers have no names. */
const defaultWorker = 'jobnik'

const statesOfWord = (word: string) => statesOf(taskLifecycle).filter(state => taskWord(state) === word)

async function findTasks({ engine, query }: DialectRequest) {
  const asked = queryOf(query, queries.tasks)
  const states = asked.status === undefined ? undefined : statesOfWord(asked.status)
  // No task is ever CREATED: a new one is PENDING.
  if (states?.length === 0) return sliced(asked, [], async () => [])
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

async function dequeue(request: DialectRequest) {
  const { engine, call, signal } = request
  const type = typeIn(request)
  const { actor: worker = defaultWorker } = call
  // A task from another client may want heartbeats, which Jobnik's workers do not send.
  const [task] = await engine.take({ worker, queues: [type], heartbeatSeconds: null }, call, signal)
  if (task === undefined) return refused(404, 'TASK_NOT_FOUND')
  // A client that disconnected will never report this task, unless it repeats the request under its idempotency key.
  if (!signal.aborted || call.idempotencyKey !== undefined) return good(taskBody(task))
  await engine.release(task.id, task.epoch, { reason: 'hung_up' })
  return refused(404, 'TASK_NOT_FOUND')
}

/** Jobnik's reports name no lease. They count for the current attempt, if the same key claimed it. */
async function report(request: DialectRequest) {
  const { engine } = request
  const { status } = bodyOf(request, bodies.taskStatus)
  const id = idIn(request)
  return unlessProblem(
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
  route('PATCH /v1/stages/{type}/tasks/dequeue', 'work', {
    summary: 'Dequeue the next task of a stage type: highest job priority first, then oldest.',
    answers: taskSchema,
    handle: dequeue,
  }),
  route('GET /v1/tasks', 'read', {
    summary: 'List tasks, oldest first. With a page: `{total, items}`.',
    query: Object.keys(queries.tasks),
    answers: listedSchema(taskSchema),
    handle: findTasks,
  }),
  route('GET /v1/tasks/{id}', 'read', {
    summary: 'Get a task.',
    answers: taskSchema,
    async handle(request) {
      queryOf(request.query, queries.none)
      return good(taskBody(await request.engine.task(idIn(request))))
    },
  }),
  metadataRoute(
    'task',
    'work',
    'Replace the metadata of a task. A worker may do so only for tasks that its key has claimed.',
    'replaceTaskMetadata',
  ),
  route('PUT /v1/tasks/{id}/status', 'work', {
    summary:
      'Report a task that is IN_PROGRESS as COMPLETED or FAILED. A FAILED task with attempts left becomes RETRIED.',
    takes: bodies.taskStatus,
    answers: taskSchema,
    handle: report,
  }),
]

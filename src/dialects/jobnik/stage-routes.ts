import type { StageState } from '../../kernel/stage.ts'
import type { StageView } from '../../protocol/jobs/jobs.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import type { AskersEngine } from '../askers-engine.ts'
import { type Answer, type Ask, type DialectRoute, good } from '../dialect.ts'
import { stageWord, taskBody, workOf } from './bodies.ts'
import { listed, sliced, stageBodies, whole } from './lists.ts'
import { illegal, refused, unless } from './refusals.ts'
import { bodyOf, bodySchemas, idIn, newTasksIn, queries, queryOf } from './requests.ts'
import * as shapes from './shapes.ts'
import { taskSpec } from './specs.ts'
import { words } from './words.ts'

const modified = { code: 'STAGE_MODIFIED_SUCCESSFULLY' }

/** The states whose word may be this one; where it depends on more, the stage itself tells. */
function statesThatMayBe(word: string): StageState[] {
  const table = Object.entries(words.stage!) as [StageState, (typeof words.stage & object)[StageState]][]
  return table.flatMap(([state, said]) => (typeof said === 'string' && said !== word ? [] : [state]))
}

async function findStages({ engine, query }: Ask) {
  const asked = queryOf(query, queries.stages)
  const { stage_operation_status: word, should_return_tasks: withTasks = false } = asked
  const filter = {
    ...(asked.job_id !== undefined && { jobId: asked.job_id }),
    ...(asked.stage_type !== undefined && { queue: asked.stage_type }),
    ...(word !== undefined && { state: statesThatMayBe(word) }),
  }
  const bodies = (stages: readonly StageView[]) => stageBodies(engine, stages, { withTasks })
  const find = (paging: object) => engine.stages({ ...filter, ...paging })
  if (word === undefined) return listed(asked, find, bodies)
  const found = (await whole(find)).filter(stage => stageWord(stage) === word)
  return sliced(asked, found, bodies)
}

/** What waits is let go on; what is PENDING already stays so. */
async function setStatus(ask: Ask, triesLeft = 1): Promise<Answer> {
  const { engine, call } = ask
  bodyOf(ask, 'stageStatus')
  const id = idIn(ask)
  const stage = await engine.stage(id)
  if (stage.state === 'pending') return good(modified)
  if (stage.state !== 'waiting') return cannotOpen(engine, stage)
  return unless(
    ['MOVE_REFUSED'],
    async () => {
      await engine.approve(id, { ...call, ifState: 'waiting' })
      return good(modified)
    },
    // Somebody else has moved it on meanwhile.
    () => (triesLeft > 0 ? setStatus(ask, triesLeft - 1) : cannotOpen(engine, stage)),
  )
}

/** Jobnik looks at the previous stage first, and only then at the status of the stage itself. */
async function cannotOpen(engine: AskersEngine, stage: StageView): Promise<Answer> {
  const previous = workOf(await engine.job(stage.jobId)).findLast(({ ordinal }) => ordinal < stage.ordinal)
  if (previous === undefined || stageWord(previous) === 'COMPLETED') {
    return illegal('STAGE', stageWord(stage), 'PENDING')
  }
  return refused(400, 'ILLEGAL_STAGE_STATUS_TRANSITION', 'Previous stage is not COMPLETED')
}

/** A stage that is cancelled takes tasks only if the failure of its job found it before its turn. */
const mayTakeTasks: readonly StageState[] = ['created', 'waiting', 'pending', 'cancelled']

async function addTasks(ask: Ask) {
  const { engine, call } = ask
  const tasks = newTasksIn(ask)
  const id = idIn(ask)
  return unless(
    ['MOVE_REFUSED', 'SEALED'],
    async () => {
      const specs = tasks.map(task => taskSpec(task, call))
      // Jobnik looks at the stage only: the stages behind a failed one take tasks, though nobody will ever get them.
      const { added } = await engine.addTasks(id, specs, { ...call, ifState: mayTakeTasks, ifCalledOff: 'keep' })
      return good((await tasksById(engine, added)).map(taskBody), 201)
    },
    ({ details }) =>
      details.state === 'running'
        ? refused(400, 'NOT_ALLOWED_TO_ADD_TASKS_TO_IN_PROGRESS_STAGE', 'ADD_TASK_NOT_ALLOWED')
        : refused(400, 'STAGE_IN_FINITE_STATE', 'STAGE_ALREADY_FINISHED_TASKS_ERROR'),
  )
}

const idsAtOnce = 1000

async function tasksById(engine: AskersEngine, ids: readonly string[]): Promise<TaskView[]> {
  const found = new Map<string, TaskView>()
  for (let from = 0; from < ids.length; from += idsAtOnce) {
    const { items } = await engine.tasks({ ids: ids.slice(from, from + idsAtOnce), limit: idsAtOnce })
    for (const task of items) found.set(task.id, task)
  }
  return ids.flatMap(id => found.get(id) ?? [])
}

async function oneStage(ask: Ask, withTasks = false) {
  const [body] = await stageBodies(ask.engine, [await ask.engine.stage(idIn(ask))], { withTasks })
  return body!
}

export const stageRoutes: readonly DialectRoute[] = [
  {
    method: 'GET',
    path: '/v1/stages',
    needs: 'read',
    says: 'Stages, oldest first; with a page, `{total, items}`.',
    query: Object.keys(queries.stages),
    answers: shapes.listed(shapes.stage),
    handle: findStages,
  },
  {
    method: 'GET',
    path: '/v1/stages/{id}',
    needs: 'read',
    says: 'A stage, with its tasks if they are asked for.',
    query: Object.keys(queries.withTasks),
    answers: shapes.stage,
    async handle(ask) {
      const { should_return_tasks: withTasks } = queryOf(ask.query, queries.withTasks)
      return good(await oneStage(ask, withTasks))
    },
  },
  {
    method: 'GET',
    path: '/v1/stages/{id}/summary',
    needs: 'read',
    says: 'How many tasks of a stage have which status.',
    answers: shapes.summary,
    async handle(ask) {
      queryOf(ask.query, queries.none)
      return good((await oneStage(ask)).summary)
    },
  },
  {
    method: 'PATCH',
    path: '/v1/stages/{id}/user-metadata',
    needs: ['operate', 'produce'],
    says: 'Replace the metadata of a stage.',
    takes: bodySchemas.metadata,
    answers: shapes.done(modified.code),
    async handle(ask) {
      const metadata = bodyOf<Record<string, unknown>>(ask, 'metadata')
      await ask.engine.replaceStageMetadata(idIn(ask), metadata, ask.call)
      return good(modified)
    },
  },
  {
    method: 'PUT',
    path: '/v1/stages/{id}/status',
    needs: 'operate',
    says: 'PENDING: a stage that is WAITING goes on, once the one before it is COMPLETED.',
    takes: bodySchemas.stageStatus,
    answers: shapes.done(modified.code),
    handle: ask => setStatus(ask),
  },
  {
    method: 'GET',
    path: '/v1/stages/{id}/tasks',
    needs: 'read',
    says: 'The tasks of a stage, oldest first; with a page, `{total, items}`.',
    query: Object.keys(queries.paged),
    answers: shapes.listed(shapes.task),
    async handle(ask) {
      const asked = queryOf(ask.query, queries.paged)
      const id = idIn(ask)
      const find = (paging: object) => ask.engine.stageTasks(id, { order: 'oldest', ...paging })
      return listed(asked, find, async tasks => tasks.map(taskBody))
    },
  },
  {
    method: 'POST',
    path: '/v1/stages/{id}/tasks',
    needs: 'produce',
    says: 'Add tasks to a stage that has not begun.',
    status: 201,
    takes: bodySchemas.newTasks,
    answers: { type: 'array', items: shapes.task },
    handle: addTasks,
  },
]

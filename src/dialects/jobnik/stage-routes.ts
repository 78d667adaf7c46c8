import { statesOf } from '../../kernel/lifecycle.ts'
import { type StageState, stageLifecycle } from '../../kernel/stage.ts'
import type { NewStageTask, StageView } from '../../protocol/jobs/jobs.ts'
import { list } from '../../protocol/shapes.ts'
import type { ValueOf } from '../../schema/check.ts'
import { type Answer, type Call, type DialectRequest, type DialectRoute, good, route } from '../dialect.ts'
import type { DialectEngine } from '../dialect-engine.ts'
import { factsOfTasks } from '../kit/pages.ts'
import { unlessProblem } from '../kit/refusals.ts'
import {
  bodies,
  bodyOf,
  doneSchema,
  idIn,
  illegal,
  metadataRoute,
  newTasksIn,
  queries,
  queryOf,
  refused,
} from './requests.ts'
import {
  listed,
  listedSchema,
  sliced,
  stageBodies,
  stageSchema,
  summarySchema,
  taskBody,
  taskSchema,
  wholeList,
  workOf,
} from './views.ts'
import { stageWord, words } from './words.ts'

const modified = { code: 'STAGE_MODIFIED_SUCCESSFULLY' }

/** The states that this word may stand for. Some words depend on more than the state. */
function statesThatMayBe(word: string): StageState[] {
  return statesOf(stageLifecycle).filter(state => {
    const known = words.stage[state]
    return typeof known !== 'string' || known === word
  })
}

async function findStages({ engine, query }: DialectRequest) {
  const asked = queryOf(query, queries.stages)
  const { stage_operation_status: word, should_return_tasks: withTasks = false } = asked
  const filter = {
    ...(asked.job_id !== undefined && { jobId: asked.job_id }),
    ...(asked.stage_type !== undefined && { queue: asked.stage_type }),
    ...(word !== undefined && { state: statesThatMayBe(word) }),
  }
  const shown = (stages: readonly StageView[]) => stageBodies(engine, stages, { withTasks })
  const find = (paging: object) => engine.stages({ ...filter, ...paging })
  if (word === undefined) return listed(asked, find, shown)
  const found = (await wholeList(find)).filter(stage => stageWord(stage) === word)
  return sliced(asked, found, shown)
}

/** Opens a stage that is WAITING. A stage that is PENDING stays so. */
async function setStatus(request: DialectRequest, triesLeft = 1): Promise<Answer> {
  const { engine, call } = request
  bodyOf(request, bodies.stageStatus)
  const id = idIn(request)
  const stage = await engine.stage(id)
  if (stage.state === 'pending') return good(modified)
  if (stage.state !== 'waiting') return cannotOpen(engine, stage)
  return unlessProblem(
    ['MOVE_REFUSED'],
    async () => {
      await engine.approve(id, { ...call, ifState: 'waiting' })
      return good(modified)
    },
    // Another request has changed the stage in between.
    () => (triesLeft > 0 ? setStatus(request, triesLeft - 1) : cannotOpen(engine, stage)),
  )
}

/** Jobnik checks the previous stage first, and only then the status of the stage itself. */
async function cannotOpen(engine: DialectEngine, stage: StageView): Promise<Answer> {
  const previous = workOf(await engine.job(stage.jobId)).findLast(({ ordinal }) => ordinal < stage.ordinal)
  if (previous === undefined || stageWord(previous) === 'COMPLETED') {
    return illegal('STAGE', stageWord(stage), 'PENDING')
  }
  return refused(400, 'ILLEGAL_STAGE_STATUS_TRANSITION', 'Previous stage is not COMPLETED')
}

/** A cancelled stage takes tasks only if it had not begun when its job failed. */
const mayTakeTasks: readonly StageState[] = ['created', 'waiting', 'pending', 'cancelled']

function taskSpec(task: ValueOf<typeof bodies.newTask>, call: Call): NewStageTask {
  const { data, userMetadata = {}, maxAttempts = 1, traceparent = call.traceparent ?? null } = task
  return { payload: data, metadata: userMetadata, retry: { attempts: maxAttempts }, traceparent }
}

async function addTasks(request: DialectRequest) {
  const { engine, call } = request
  const tasks = newTasksIn(request)
  const id = idIn(request)
  return unlessProblem(
    ['MOVE_REFUSED', 'SEALED'],
    async () => {
      const specs = tasks.map(task => taskSpec(task, call))
      // Jobnik checks the stage only, so stages after a failed one take tasks that no worker will ever get.
      const { added } = await engine.addTasks(id, specs, { ...call, ifState: mayTakeTasks, ifCalledOff: 'keep' })
      // As large as the request at most.
      const bodies = await factsOfTasks(engine, added, taskBody)
      return good(
        added.flatMap(task => bodies.get(task) ?? []),
        201,
      )
    },
    ({ details }) =>
      details.state === 'running'
        ? refused(400, 'NOT_ALLOWED_TO_ADD_TASKS_TO_IN_PROGRESS_STAGE', 'ADD_TASK_NOT_ALLOWED')
        : refused(400, 'STAGE_IN_FINITE_STATE', 'STAGE_ALREADY_FINISHED_TASKS_ERROR'),
  )
}

async function oneStage(request: DialectRequest, withTasks = false) {
  const [body] = await stageBodies(request.engine, [await request.engine.stage(idIn(request))], { withTasks })
  return body!
}

export const stageRoutes: readonly DialectRoute[] = [
  route('GET /v1/stages', 'read', {
    summary: 'List stages, oldest first. With a page: `{total, items}`.',
    query: Object.keys(queries.stages),
    answers: listedSchema(stageSchema),
    handle: findStages,
  }),
  route('GET /v1/stages/{id}', 'read', {
    summary: 'Get a stage, with its tasks on request.',
    query: Object.keys(queries.withTasks),
    answers: stageSchema,
    async handle(request) {
      const { should_return_tasks: withTasks } = queryOf(request.query, queries.withTasks)
      return good(await oneStage(request, withTasks))
    },
  }),
  route('GET /v1/stages/{id}/summary', 'read', {
    summary: 'Count the tasks of a stage by status.',
    answers: summarySchema,
    async handle(request) {
      queryOf(request.query, queries.none)
      return good((await oneStage(request)).summary)
    },
  }),
  metadataRoute('stage', 'produce', 'Replace the metadata of a stage.', 'replaceStageMetadata'),
  route('PUT /v1/stages/{id}/status', 'operate', {
    summary: 'Open a stage that is WAITING (PENDING). It starts once the previous stage is COMPLETED.',
    takes: bodies.stageStatus,
    answers: doneSchema(modified.code),
    handle: request => setStatus(request),
  }),
  route('GET /v1/stages/{id}/tasks', 'read', {
    summary: 'List the tasks of a stage, oldest first. With a page: `{total, items}`.',
    query: Object.keys(queries.paged),
    answers: listedSchema(taskSchema),
    async handle(request) {
      const asked = queryOf(request.query, queries.paged)
      const id = idIn(request)
      const find = (paging: object) => request.engine.stageTasks(id, { order: 'oldest', ...paging })
      return listed(asked, find, async tasks => tasks.map(taskBody))
    },
  }),
  route('POST /v1/stages/{id}/tasks', 'produce', {
    summary: 'Add tasks to a stage that has not started.',
    status: 201,
    takes: list(bodies.newTask),
    answers: list(taskSchema),
    handle: addTasks,
  }),
]

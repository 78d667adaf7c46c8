/** Jobs as Marie shows tasks, and the handlers that list, show, stop, resume and delete them. */
import { statesOf } from '../../kernel/lifecycle.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import { anything, at, figure, flag, list, object, orNull, text, view, whole } from '../../protocol/shapes.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { isObject } from '../../schema/check.ts'
import { type Answer, type Call, type DialectRequest, type DialectRoute, route } from '../dialect.ts'
import type { DialectEngine } from '../dialect-engine.ts'
import { wholePage } from '../kit/pages.ts'
import { unlessProblem } from '../kit/refusals.ts'
import { anyText, type FieldTable, parsedWhole, readQuery } from '../kit/requests.ts'
import { statesWithWord } from '../words.ts'
import { good, goodSchema, refusal } from './envelope.ts'
import { idOf, type keptOf } from './submission.ts'
import { words } from './words.ts'

/** Marie has no pages, so this is also the default. */
const longestList = 1000
const listQuery = { dag_id: anyText, queue: anyText, limit: parsedWhole(1, longestList, Number) }

/** An empty parameter is absent. If one is given twice, the first counts. */
function queryOf<Table extends FieldTable>({ query }: DialectRequest, table: Table) {
  const parameters = Object.entries(query).map(([name, value]) => [name, [value].flat()[0]])
  return readQuery(Object.fromEntries(parameters.filter(([, value]) => value !== '')), table)
}

async function listJobs(request: DialectRequest): Promise<Answer> {
  const { state: name } = queryOf(request, { state: anyText })
  if (name === undefined) return listIn(request, [])
  const states = statesNamed(name)
  return states.length > 0 ? listIn(request, states) : refusal(400, 'INVALID_STATE', noState(name))
}

const taskWords = [...new Set(statesOf(taskLifecycle).map(state => words.task[state]))]
const statesNamed = (name: string) => statesWithWord(words.task, name.toUpperCase())

function noState(name: string): string {
  return `'${name}' is not a state (${taskWords.join(', ')})`
}

/** One address serves both: a name of a state lists the jobs in it, any other text is the id of a job. */
async function stateOrJob(request: DialectRequest): Promise<Answer> {
  const { engine, params } = request
  const name = params.id!
  const states = statesNamed(name)
  if (states.length > 0) return listIn(request, states)
  const show = async () => good((await workInfos(engine, [await engine.task(idOf('job', name))]))[0])
  if (!/^[a-z_]+$/i.test(name)) return show()
  const isNeither = () => refusal(400, 'INVALID_STATE', `${noState(name)}, and no job has this id`)
  return unlessProblem(['TASK_NOT_FOUND'], show, isNeither)
}

/** Newest first. Without the sort, jobs with ids of their own would be anywhere. */
async function listIn(request: DialectRequest, states: readonly TaskState[]): Promise<Answer> {
  const { engine } = request
  const { dag_id: dag, queue, limit = longestList } = queryOf(request, listQuery)
  const filter = {
    ...(states.length > 0 && { state: states }),
    ...(dag !== undefined && { jobId: idOf('dag', dag) }),
    ...(queue !== undefined && { queue }),
  }
  const { items } = await wholePage(paging => engine.tasks({ ...filter, ...paging }), { limit })
  const sorted = [...items].sort((one, other) => (one.createdAt < other.createdAt ? 1 : -1))
  return good(await workInfos(engine, sorted))
}

/** A route that does one thing to a job, and says that it is done. */
function acting(act: (engine: DialectEngine, id: string, call: Call) => Promise<unknown>, done: string) {
  return {
    answers: goodSchema({ const: done }),
    async handle({ engine, params, call }: DialectRequest) {
      await act(engine, idOf('job', params.id!), call)
      return good(done)
    },
  }
}

/** States whose reason is in the task's events. */
const reasoned: readonly TaskState[] = ['skipped', 'cancelled']

export async function workInfos(engine: DialectEngine, tasks: readonly TaskView[]) {
  const ids = tasks.filter(({ state }) => reasoned.includes(state)).map(({ id }) => id)
  const reasons = ids.length === 0 ? undefined : await engine.reasonsOf(ids)
  return tasks.map(task => workInfo(task, reasons?.get(task.id)))
}

/** Fields that only Marie's clients send are null for tasks from other clients. */
function workInfo(task: TaskView, reason: string | undefined) {
  const kept: Partial<ReturnType<typeof keptOf>> = isObject(task.metadata.marie) ? task.metadata.marie : {}
  return {
    id: kept.id ?? task.id,
    name: task.type,
    priority: task.priority,
    data: task.payload,
    state: words.task[task.state],
    retry_limit: kept.retry_limit ?? null,
    retry_delay: kept.retry_delay ?? null,
    retry_backoff: kept.retry_backoff ?? null,
    start_after: task.runAt,
    expire_in_seconds: kept.expire_in_seconds ?? null,
    keep_until: task.keepUntil,
    dependencies: kept.dependencies ?? [],
    dag_id: kept.dag_id ?? task.jobId,
    soft_sla: kept.soft_sla ?? null,
    hard_sla: kept.hard_sla ?? null,
    created_at: task.createdAt,
    completed_at: task.endedAt,
    output_metadata: outputMetadata(task, reason),
  }
}

/** The metadata that Marie's scheduler stores when it completes, skips or fails a job. */
function outputMetadata({ state, output, error, tries }: TaskView, reason: string | undefined) {
  if (reason !== undefined) return { reason }
  if (state === 'succeeded') return isObject(output) || output === null ? output : { result: output }
  return error === null ? null : { error: error.message, attempts: tries }
}

export const workInfoSchema = view<ReturnType<typeof workInfo>>({
  id: text,
  name: text,
  priority: whole,
  data: anything,
  state: { enum: taskWords },
  retry_limit: orNull(whole),
  retry_delay: orNull(figure),
  retry_backoff: orNull(flag),
  start_after: at,
  expire_in_seconds: orNull(figure),
  keep_until: orNull(at),
  dependencies: list(text),
  dag_id: orNull(text),
  soft_sla: orNull(at),
  hard_sla: orNull(at),
  created_at: at,
  completed_at: orNull(at),
  output_metadata: orNull(object),
})

const jobs = list(workInfoSchema)
/** A soft cancel: an executor that has the job is asked to stop, and may still finish. */
const stop = {
  summary: 'Cancel a job that is not terminal.',
  ...acting((engine, id, call) => engine.cancel(id, call), 'Job stopped'),
}

export const jobRoutes: readonly DialectRoute[] = [
  route('GET /api/jobs', 'read', {
    summary: 'List jobs, newest first, filtered by `?state=`, `?dag_id=`, `?queue=` and `?limit=`.',
    query: ['state', 'dag_id', 'queue', 'limit'],
    answers: goodSchema(jobs),
    handle: listJobs,
  }),
  route('GET /api/jobs/{id}', 'read', {
    summary: 'List the jobs in a state, or get one job.',
    query: ['dag_id', 'queue', 'limit'],
    answers: goodSchema({ anyOf: [jobs, workInfoSchema] }),
    handle: stateOrJob,
  }),
  route('GET /api/jobs/{id}/stop', 'operate', stop),
  route('POST /api/jobs/{id}/stop', 'operate', stop),
  route('POST /api/jobs/{id}/resume', 'operate', {
    summary: 'Resume a cancelled job.',
    ...acting((engine, id, call) => engine.resume(id, call), 'Job resumed'),
  }),
  route('DELETE /api/jobs/{id}', 'operate', {
    summary: 'Delete the record of a terminal job.',
    ...acting((engine, id, call) => engine.deleteTask(id, call), 'Job deleted'),
  }),
]

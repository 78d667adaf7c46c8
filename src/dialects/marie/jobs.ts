/** Handlers that list, show, stop, resume and delete jobs. */

import { statesOf } from '../../kernel/lifecycle.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import type { Answer, DialectRequest } from '../dialect.ts'
import { anyText, type FieldTable, wholeNumber } from '../kit/fields.ts'
import { readQuery } from '../kit/read.ts'
import { unlessProblem } from '../kit/refusals.ts'
import { statesWithWord } from '../words.ts'
import { good, refusal } from './envelope.ts'
import { idOf } from './ids.ts'
import { words } from './words.ts'
import { workInfos } from './work-info.ts'

/** Marie has no pages, so this is also the default. */
const longestList = 1000
const listQuery = { dag_id: anyText, queue: anyText, limit: wholeNumber(1, longestList, Number) }

/** An empty parameter is absent. If one is given twice, the first counts. */
function queryOf<Table extends FieldTable>({ query }: DialectRequest, table: Table) {
  const given = Object.entries(query).map(([name, value]) => [name, [value].flat()[0]])
  return readQuery(Object.fromEntries(given.filter(([, value]) => value !== '')), table)
}

export async function listJobs(request: DialectRequest): Promise<Answer> {
  const { state: name } = queryOf(request, { state: anyText })
  if (name === undefined) return list(request, [])
  const states = statesNamed(name)
  return states.length > 0 ? list(request, states) : refusal(400, 'INVALID_STATE', noState(name))
}

const statesNamed = (name: string) => statesWithWord(words.task!, name.toUpperCase())

function noState(name: string): string {
  const known = new Set(statesOf(taskLifecycle).map(state => words.task![state]))
  return `'${name}' is not a state (${[...known].join(', ')})`
}

/** One address serves both: a name of a state lists the jobs in it, any other text is the id of a job. */
export async function stateOrJob(request: DialectRequest): Promise<Answer> {
  const { engine, params } = request
  const name = params.id!
  const states = statesNamed(name)
  if (states.length > 0) return list(request, states)
  const show = async () => good((await workInfos(engine, [await engine.task(idOf('job', name))]))[0])
  if (!/^[a-z_]+$/i.test(name)) return show()
  const isNeither = () => refusal(400, 'INVALID_STATE', `${noState(name)}, and no job has this id`)
  return unlessProblem(['TASK_NOT_FOUND'], show, isNeither)
}

/** Newest first. Without the sort, jobs with ids of their own would be anywhere. */
async function list(request: DialectRequest, states: readonly TaskState[]): Promise<Answer> {
  const { engine } = request
  const { dag_id: dag, queue, limit = longestList } = queryOf(request, listQuery)
  const { items } = await engine.tasks({
    ...(states.length > 0 && { state: states }),
    ...(dag !== undefined && { jobId: idOf('dag', dag) }),
    ...(queue !== undefined && { queue }),
    limit,
  })
  const sorted = items.sort((one, other) => (one.createdAt < other.createdAt ? 1 : -1))
  return good(await workInfos(engine, sorted))
}

/** A soft cancel: an executor that has the job is asked to stop, and may still finish. */
export async function stopJob({ engine, params, call }: DialectRequest): Promise<Answer> {
  await engine.cancel(idOf('job', params.id!), call)
  return good('Job stopped')
}

export async function resumeJob({ engine, params, call }: DialectRequest): Promise<Answer> {
  await engine.resume(idOf('job', params.id!), call)
  return good('Job resumed')
}

export async function deleteJob({ engine, params, call }: DialectRequest): Promise<Answer> {
  await engine.deleteTask(idOf('job', params.id!), call)
  return good('Job deleted')
}

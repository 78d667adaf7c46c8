/** What is asked about jobs, and of them. */

import { statesOf } from '../../kernel/lifecycle.ts'
import { Problem } from '../../kernel/problem.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import { faultOf, number } from '../../schema/check.ts'
import type { Answer, Ask } from '../dialect.ts'
import { statesCalled } from '../words.ts'
import { good, refusal } from './envelope.ts'
import { idOf } from './ids.ts'
import { words } from './words.ts'
import { workInfos } from './work-info.ts'

/** As many as Marie lists; it has no pages. */
const most = 1000
const limitField = number({ from: 1, to: most, whole: true })

export async function listJobs(ask: Ask): Promise<Answer> {
  const name = textIn(ask.query, 'state')
  if (name === undefined) return list(ask, [])
  const states = statesNamed(name)
  return states.length > 0 ? list(ask, states) : refusal(400, 'INVALID_STATE', noState(name))
}

const statesNamed = (name: string) => statesCalled(words.task!, name.toUpperCase())

function noState(name: string): string {
  const known = new Set(statesOf(taskLifecycle).map(state => words.task![state]))
  return `'${name}' is not a state (${[...known].join(', ')})`
}

/** The address of one job is also that of all in a state: a name of a state is a state. */
export async function stateOrJob(ask: Ask): Promise<Answer> {
  const { engine, params } = ask
  const name = params.id!
  const states = statesNamed(name)
  if (states.length > 0) return list(ask, states)
  try {
    const [info] = await workInfos(engine, [await engine.task(idOf('job', name))])
    return good(info)
  } catch (error) {
    const mayBeState = /^[a-z_]+$/i.test(name)
    if (!mayBeState || !(error instanceof Problem) || error.code !== 'TASK_NOT_FOUND') throw error
    return refusal(400, 'INVALID_STATE', `${noState(name)}, and no job has this id`)
  }
}

/** Newest first; jobs that have ids of their own are anywhere in the order of ids. */
async function list({ engine, query }: Ask, states: readonly TaskState[]): Promise<Answer> {
  const dag = textIn(query, 'dag_id')
  const queue = textIn(query, 'queue')
  const { items } = await engine.tasks({
    ...(states.length > 0 && { state: states }),
    ...(dag !== undefined && { jobId: idOf('dag', dag) }),
    ...(queue !== undefined && { queue }),
    limit: limitIn(query),
  })
  const sorted = items.sort((one, other) => (one.createdAt < other.createdAt ? 1 : -1))
  return good(await workInfos(engine, sorted))
}

function textIn(query: Ask['query'], name: string): string | undefined {
  const value = query[name]
  return value === '' || value === undefined ? undefined : [value].flat()[0]
}

function limitIn(query: Ask['query']): number {
  const limit = Number(textIn(query, 'limit') ?? most)
  const must = faultOf(limitField, limit)
  if (must !== undefined) throw new Problem('OPTION_INVALID', { at: 'jobs', option: 'limit', must })
  return limit
}

/** Softly: an executor that has it is told, and may finish. */
export async function stopJob({ engine, params, call }: Ask): Promise<Answer> {
  await engine.cancel(idOf('job', params.id!), call)
  return good('Job stopped')
}

export async function resumeJob({ engine, params, call }: Ask): Promise<Answer> {
  await engine.resume(idOf('job', params.id!), call)
  return good('Job resumed')
}

export async function deleteJob({ engine, params, call }: Ask): Promise<Answer> {
  await engine.deleteTask(idOf('job', params.id!), call)
  return good('Job deleted')
}

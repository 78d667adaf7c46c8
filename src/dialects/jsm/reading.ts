/** Handlers of the routes that only read. */
import { ignoring, Problem } from '../../kernel/problem.ts'
import type { EventView } from '../../protocol/tasks/tasks.ts'
import type { AskersEngine } from '../askers-engine.ts'
import { type Answer, type DialectRequest, good } from '../dialect.ts'
import { tasksById } from '../kit/pages.ts'
import { readQuery } from '../kit/read.ts'
import { eventsOf } from './event.ts'
import { deadLetterOf, jobOf, traceIdOf } from './job.ts'
import { deadLetterQuery, eventQuery, pageQuery } from './requests.ts'
import { eventTypes } from './words.ts'

export async function job({ engine, params }: DialectRequest): Promise<Answer> {
  return good(jobOf(await engine.task(params.id!)))
}

export async function events(request: DialectRequest): Promise<Answer> {
  const { engine, params, query } = request
  const task = await engine.task(params.id!).catch(ignoring('TASK_NOT_FOUND'))
  if (task === undefined) return eventsOfPawlJob(request)
  const { items, next } = await engine.taskEvents(task.id, { ...readQuery(query, pageQuery), pulses: true })
  return good({ items: items.flatMap(event => eventsOf(event, traceIdOf(task))), next })
}

/** The id of a Pawl job, whose tasks are the jobs here. Its only event here is its compensation. */
async function eventsOfPawlJob({ engine, params, query }: DialectRequest): Promise<Answer> {
  const page = await engine.jobEvents(params.id!, readQuery(query, pageQuery)).catch(ignoring('JOB_NOT_FOUND'))
  if (page === undefined) throw new Problem('TASK_NOT_FOUND', { id: params.id })
  return good({ items: page.items.flatMap(event => eventsOf(event, event.traceId)), next: page.next })
}

/** The events of all jobs. */
export async function allEvents({ engine, query }: DialectRequest): Promise<Answer> {
  const { type, limit = 1000, ...rest } = readQuery(query, eventQuery)
  const types = Object.keys(eventTypes).filter(name => type === undefined || eventTypes[name] === type)
  const { items, next, more } = await engine.events({ ...rest, limit, types })
  const traceIds = await traceIdsOf(engine, items)
  const shown = items.flatMap(event => eventsOf(event, traceIds.get(event.entityId) ?? event.traceId))
  return good({ items: shown, next: more ? next : null })
}

/** The trace ids of the tasks of these events. A trace id may be any text, so it is kept with its task. */
async function traceIdsOf(
  engine: AskersEngine,
  items: readonly EventView[],
): Promise<ReadonlyMap<string, string | null>> {
  const ids = [...new Set(items.flatMap(({ entity, entityId }) => (entity === 'task' ? [entityId] : [])))]
  return new Map((await tasksById(engine, ids)).map(task => [task.id, traceIdOf(task)]))
}

export async function deadLetters({ engine, query }: DialectRequest): Promise<Answer> {
  const { reason_code: reasonCode, ...filter } = readQuery(query, deadLetterQuery)
  const { items, next } = await engine.deadLetters({ ...filter, ...(reasonCode !== undefined && { reasonCode }) })
  return good({ items: items.map(deadLetterOf), next })
}

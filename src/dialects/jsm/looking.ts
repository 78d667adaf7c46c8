/** What can be seen. */
import type { ReasonCode } from '../../kernel/decide.ts'
import { ignoring, Problem } from '../../kernel/problem.ts'
import type { EventView } from '../../protocol/tasks/tasks.ts'
import type { AskersEngine } from '../askers-engine.ts'
import { type Answer, type Ask, good } from '../dialect.ts'
import { pageOf, readEventQuery } from './bodies.ts'
import { eventsOf } from './event.ts'
import { deadLetterOf, jobOf, traceIdOf } from './job.ts'
import { readMetrics } from './metrics.ts'
import { eventTypes } from './words.ts'

export async function job({ engine, params }: Ask): Promise<Answer> {
  return good(jobOf(await engine.task(params.id!)))
}

export async function events(ask: Ask): Promise<Answer> {
  const { engine, params, query } = ask
  const task = await engine.task(params.id!).catch(ignoring('TASK_NOT_FOUND'))
  if (task === undefined) return eventsOfPawlJob(ask)
  const { items, next } = await engine.taskEvents(task.id, { ...pageOf(query), pulses: true })
  return good({ items: items.flatMap(event => eventsOf(event, traceIdOf(task))), next })
}

/** A job of ours, whose tasks are the jobs here: what is told of it is that it was compensated. */
async function eventsOfPawlJob({ engine, params, query }: Ask): Promise<Answer> {
  const page = await engine.jobEvents(params.id!, pageOf(query)).catch(ignoring('JOB_NOT_FOUND'))
  if (page === undefined) throw new Problem('TASK_NOT_FOUND', { id: params.id })
  return good({ items: page.items.flatMap(event => eventsOf(event, event.traceId)), next: page.next })
}

/** Events of all jobs. */
export async function allEvents({ engine, query }: Ask): Promise<Answer> {
  const { type, limit = 1000, ...rest } = readEventQuery(query)
  const types = Object.keys(eventTypes).filter(name => type === undefined || eventTypes[name] === type)
  const { items, next, more } = await engine.events({ ...rest, limit, types })
  const traceIds = await traceIdsOf(engine, items)
  const told = items.flatMap(event => eventsOf(event, traceIds.get(event.entityId) ?? event.traceId))
  return good({ items: told, next: more ? next : null })
}

/** The trace ids of the tasks that these events are of: one may be any text, and is kept with its task. */
async function traceIdsOf(
  engine: AskersEngine,
  items: readonly EventView[],
): Promise<ReadonlyMap<string, string | null>> {
  const ids = [...new Set(items.flatMap(({ entity, entityId }) => (entity === 'task' ? [entityId] : [])))]
  const { items: tasks } = await engine.tasks({ ids, limit: 1000 })
  return new Map(tasks.map(task => [task.id, traceIdOf(task)]))
}

export async function deadLetters({ engine, query }: Ask): Promise<Answer> {
  const { type, reason_code: reasonCode } = query
  const { items, next } = await engine.deadLetters({
    ...pageOf(query),
    ...(type !== undefined && { type: type as string }),
    ...(reasonCode !== undefined && { reasonCode: reasonCode as ReasonCode }),
  })
  return good({ items: items.map(deadLetterOf), next })
}

export async function metrics({ engine }: Ask): Promise<Answer> {
  return good(await readMetrics(engine))
}

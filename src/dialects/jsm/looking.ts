/** What can be seen. */
import type { ReasonCode } from '../../kernel/decide.ts'
import { type Answer, type Ask, good } from '../dialect.ts'
import { pageOf } from './bodies.ts'
import { eventsOf } from './event.ts'
import { deadLetterOf, jobOf, traceIdOf } from './job.ts'
import { readMetrics } from './metrics.ts'

export async function job({ engine, params }: Ask): Promise<Answer> {
  return good(jobOf(await engine.task(params.id!)))
}

export async function events({ engine, params, query }: Ask): Promise<Answer> {
  const task = await engine.task(params.id!)
  const { items, next } = await engine.taskEvents(task.id, { ...pageOf(query), pulses: true })
  return good({ items: items.flatMap(event => eventsOf(event, traceIdOf(task))), next })
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

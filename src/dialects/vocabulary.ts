/** Our own answers in another system's words: the shape stays, the states and the names of events are the other's. */

import type { Spoken } from '../protocol/dialects.ts'
import type { EventView } from '../protocol/tasks/tasks.ts'
import { isObject } from '../schema/check.ts'
import { type Words, wordFor } from './words.ts'

type Entity = Exclude<Spoken, 'event' | 'attempt'>

/** A list is put into words one by one, a job with its stages; what it has no word for is null. */
export function inWords(entity: Spoken, view: unknown, words: Words, now: number): unknown {
  if (Array.isArray(view)) return view.map(each => inWords(entity, each, words, now))
  if (!isObject(view)) return view
  if (Array.isArray(view.items)) return { ...view, items: inWords(entity, view.items, words, now) }
  if (entity === 'event') return eventInWords(view as unknown as EventView, words, now)
  const named = (field: string, of: Entity) =>
    typeof view[field] === 'string' && { [field]: stateIn(of, { state: view[field] }, words, now) }
  if (entity === 'attempt') return { ...view, ...named('outcome', 'task') }
  const state = stateIn(entity, view as { state: string }, words, now)
  const said = { ...view, state, ...named('endsAs', entity), ...named('calledOffFrom', entity) }
  if (entity !== 'job' || !Array.isArray(view.stages)) return said
  return { ...said, stages: inWords('stage', view.stages, words, now) }
}

function eventInWords(event: EventView, words: Words, now: number) {
  const state = (name: string | null) => name && stateIn(event.entity, { state: name }, words, now)
  const type = words.eventType === undefined ? event.type : words.eventType(event)
  return { ...event, type, from: state(event.from), to: state(event.to) }
}

function stateIn(entity: Entity, view: { readonly state: string }, words: Words, now: number): string | null {
  return wordFor(words[entity] as Parameters<typeof wordFor>[0], view, now)
}

/** Shows Pawl's own answers with another system's names for states and events. The shape stays the same. */

import type { DialectName } from '../protocol/dialects.ts'
import type { EventView } from '../protocol/tasks/tasks.ts'
import { isObject } from '../schema/check.ts'
import { words as falconeri } from './falconeri/words.ts'
import { words as jobnik } from './jobnik/words.ts'
import { words as jsm } from './jsm/words.ts'
import { words as marie } from './marie/words.ts'
import { words as pipeline } from './pipeline/words.ts'
import { type Words, wordFor } from './words.ts'

/** Apart from the dialects themselves, so that the CLI need not load their routes. */
export const wordsOf: Readonly<Record<DialectName, Words>> = { marie, jobnik, falconeri, pipeline, jsm }

type Entity = 'job' | 'stage' | 'task' | 'artifact'
/** The views that have words in other systems. */
export type Spoken = Entity | 'attempt' | 'event'

/** Translates a view, a job with its stages, or every item of a list. A state without a word becomes null. */
export function inWords(entity: Spoken, view: unknown, words: Words, now: number): unknown {
  if (Array.isArray(view)) return view.map(each => inWords(entity, each, words, now))
  if (!isObject(view)) return view
  if (Array.isArray(view.items)) return { ...view, items: inWords(entity, view.items, words, now) }
  if (entity === 'event') return eventInWords(view as unknown as EventView, words, now)
  const named = (field: string, of: Entity) =>
    typeof view[field] === 'string' && { [field]: stateIn(of, { state: view[field] }, words, now) }
  if (entity === 'attempt') return { ...view, ...named('outcome', 'task') }
  const state = stateIn(entity, view as { state: string }, words, now)
  const translated = { ...view, state, ...named('endsAs', entity), ...named('calledOffFrom', entity) }
  if (entity !== 'job' || !Array.isArray(view.stages)) return translated
  return { ...translated, stages: inWords('stage', view.stages, words, now) }
}

function eventInWords(event: EventView, words: Words, now: number) {
  const state = (name: string | null) => name && stateIn(event.entity, { state: name }, words, now)
  const type = words.eventType === undefined ? event.type : words.eventType(event)
  return { ...event, type, from: state(event.from), to: state(event.to) }
}

function stateIn(entity: Entity, view: { readonly state: string }, words: Words, now: number): string | null {
  return wordFor(words[entity] as Parameters<typeof wordFor>[0], view, now)
}

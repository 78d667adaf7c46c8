/** `?vocabulary=`: what a read would answer, with the states and events in another system's words. */
import { wordsOf } from '../dialects/all-words.ts'
import { inWords } from '../dialects/vocabulary.ts'
import type { Pawl } from '../engine/engine.ts'
import { checkOptions, type Fields, oneOf } from '../kernel/check.ts'
import { type DialectName, dialectNames, spokenBy } from '../protocol/dialects.ts'
import type { Operation } from '../protocol/routes.ts'
import type { Came } from './read-request.ts'

export const vocabularyFields: Fields = { vocabulary: oneOf(dialectNames) }

/** Puts an answer into words. */
export type Translate = (answer: unknown) => Promise<unknown>

export interface Asked {
  /** The request without it: the engine speaks its own words only. */
  readonly came: Came
  /** Undefined: it is answered in ours. */
  readonly translate: Translate | undefined
}

export function vocabularyOf(engine: Pawl, operation: Operation, came: Came): Asked {
  const entity = spokenBy[operation]
  const { vocabulary, ...query } = came.query
  if (entity === undefined || vocabulary === undefined) return { came, translate: undefined }
  checkOptions({ vocabulary }, vocabularyFields, operation)
  const words = wordsOf[vocabulary as DialectName]
  return {
    came: { ...came, query },
    translate: async answer => inWords(entity, answer, words, await engine.clock()),
  }
}

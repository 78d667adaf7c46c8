/** `--vocabulary`: translates the answers of the API into the words of another system. */
import { inWords, type Spoken, wordsOf } from '../dialects/vocabulary.ts'
import { type DialectName, dialectNames } from '../protocol/dialects.ts'
import type { OperationEntry } from '../protocol/operation.ts'
import { namedOperations, type PawlApi } from '../protocol/operations.ts'
import type { Schema } from '../schema/check.ts'

export const vocabularyFlag = {
  vocabulary: {
    kind: 'text',
    value: 'NAME',
    summary: 'show states and events with the names that another system uses',
    words: dialectNames,
  },
} as const

const spokenViews: Readonly<Record<string, Spoken>> = {
  Job: 'job',
  Stage: 'stage',
  Task: 'task',
  Attempt: 'attempt',
  Artifact: 'artifact',
  Event: 'event',
  FeedPage: 'event',
}

/** The view that an answer is, or holds as a list or page; undefined: it has no words in other systems. */
function spokenIn(answer: Schema | undefined): Spoken | undefined {
  const { $ref, items, properties } = (answer ?? {}) as {
    $ref?: string
    items?: Schema
    properties?: { items?: Schema }
  }
  if ($ref !== undefined) return spokenViews[$ref.replace('#/components/schemas/', '')]
  const inner = items ?? properties?.items
  return inner && spokenIn(inner)
}

/** Reads and control requests. Other requests are steps of commands that go on with the answer. */
const isShown = ({ method, takes }: OperationEntry) => method === 'GET' || takes.includes('options')

type Call = (...args: unknown[]) => Promise<unknown>

/** The same interface; unchanged if `name` is undefined. Only for commands that do not base decisions on states. */
export function inVocabulary(api: PawlApi, name: DialectName | undefined): PawlApi {
  if (name === undefined) return api
  const words = wordsOf[name]
  const spoken = namedOperations.flatMap(([operation, entry]) => {
    const entity = isShown(entry) ? spokenIn(entry.answer) : undefined
    if (entity === undefined) return []
    const call = api[operation] as Call
    // Relative to the clock of this machine, like all times in the output.
    return [[operation, async (...args: unknown[]) => inWords(entity, await call(...args), words, Date.now())] as const]
  })
  return { ...api, ...Object.fromEntries(spoken) }
}

/** `--vocabulary`: translates the answers of the API into the words of another system. */
import { inWords, wordsOf } from '../dialects/vocabulary.ts'
import type { PawlApi } from '../protocol/api.ts'
import { type DialectName, dialectNames, type Spoken, spokenBy } from '../protocol/dialects.ts'

export const vocabularyFlag = {
  vocabulary: {
    kind: 'text',
    value: 'NAME',
    summary: 'show states and events with the names that another system uses',
    words: dialectNames,
  },
} as const

/** The kind of entity that each control request returns. */
const returnedBy: Partial<Readonly<Record<keyof PawlApi, Spoken>>> = {
  startJob: 'job',
  pauseJob: 'job',
  resumeJob: 'job',
  cancelJob: 'job',
  retryJob: 'job',
  sealJob: 'job',
  approve: 'stage',
  reject: 'stage',
  hold: 'stage',
  cancelStage: 'stage',
  retryStage: 'stage',
  sealStage: 'stage',
  cancel: 'task',
  resume: 'task',
  retry: 'task',
  deadLetter: 'task',
}

type Call = (...args: unknown[]) => Promise<unknown>

/** The same interface; unchanged if `name` is undefined. Only for commands that do not base decisions on states. */
export function inVocabulary(api: PawlApi, name: DialectName | undefined): PawlApi {
  if (name === undefined) return api
  const words = wordsOf[name]
  const spoken = Object.entries({ ...spokenBy, ...returnedBy }).map(([operation, entity]) => {
    const call = api[operation as keyof PawlApi] as Call
    // Relative to the clock of this machine, like all times in the output.
    return [operation, async (...args: unknown[]) => inWords(entity, await call(...args), words, Date.now())] as const
  })
  return { ...api, ...Object.fromEntries(spoken) }
}

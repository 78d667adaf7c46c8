/** `--vocabulary`: what is asked for is answered in another system's words, before any command sees it. */
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

/** Requests answer with what they moved. */
const movedBy: Partial<Readonly<Record<keyof PawlApi, Spoken>>> = {
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

/** The same interface; undefined: in our own words. Only for commands that decide nothing by a state. */
export function inVocabulary(api: PawlApi, name: DialectName | undefined): PawlApi {
  if (name === undefined) return api
  const words = wordsOf[name]
  const spoken = Object.entries({ ...spokenBy, ...movedBy }).map(([operation, entity]) => {
    const call = api[operation as keyof PawlApi] as Call
    // Moments are told by this machine's clock, as everywhere in what people read.
    return [operation, async (...args: unknown[]) => inWords(entity, await call(...args), words, Date.now())] as const
  })
  return { ...api, ...Object.fromEntries(spoken) }
}

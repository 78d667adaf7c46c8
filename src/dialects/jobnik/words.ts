/** Jobnik's words for states and priorities. */
import type { TaskState } from '../../kernel/task.ts'
import { type JobFacts, type StageFacts, type Words, wordFor } from '../words.ts'

export const jobWords = ['PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'ABORTED', 'PAUSED', 'CREATED'] as const
export const stageWords = ['CREATED', 'PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'ABORTED', 'WAITING'] as const
export const taskWords = ['CREATED', 'PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'RETRIED'] as const

export const words = {
  task: {
    blocked: 'PENDING',
    queued: 'PENDING',
    retrying: 'RETRIED',
    assigned: 'IN_PROGRESS',
    running: 'IN_PROGRESS',
    succeeded: 'COMPLETED',
    skipped: 'COMPLETED',
    failed: 'FAILED',
    cancelled: 'FAILED',
    expired: 'FAILED',
    dead_lettered: 'FAILED',
  },
  stage: {
    created: { label: 'CREATED, or WAITING if it has a gate or is held', of: wordBeforeStart },
    waiting: 'WAITING',
    pending: 'PENDING',
    running: 'IN_PROGRESS',
    stopping: { label: 'as it will end', of: stage => (stage.endsAs === 'failed' ? 'FAILED' : cancelledWord(stage)) },
    succeeded: 'COMPLETED',
    partial: 'COMPLETED',
    failed: 'FAILED',
    skipped: 'COMPLETED',
    cancelled: { label: 'ABORTED; because its job failed: what it was before', of: cancelledWord },
  },
  job: {
    created: 'PENDING',
    pending: 'PENDING',
    running: 'IN_PROGRESS',
    compensating: 'IN_PROGRESS',
    paused: 'PAUSED',
    stopping: {
      label: 'as it will end',
      of: ({ endsAs }: JobFacts) => (endsAs === 'failed' || endsAs === 'expired' ? 'FAILED' : 'ABORTED'),
    },
    succeeded: 'COMPLETED',
    partial: 'COMPLETED',
    failed: 'FAILED',
    cancelled: 'ABORTED',
    expired: 'FAILED',
  },
  artifact: null,
} as const satisfies Words

export const taskWord = (state: TaskState) => words.task[state]
export const stageWord = (stage: StageFacts) => wordFor(words.stage, stage)!
export const jobWord = (job: JobFacts) => wordFor(words.job, job)!

/** A stage that will not open by itself, because of a gate or a hold, is WAITING even before its needs are met. */
function wordBeforeStart({ gate, held }: StageFacts): string {
  return gate || held ? 'WAITING' : 'CREATED'
}

/** A stage that had not begun when its job failed keeps its status. */
function cancelledWord(stage: StageFacts): string {
  const { calledOffFrom } = stage
  if (!calledOffFrom) return 'ABORTED'
  if (calledOffFrom === 'created') return wordBeforeStart(stage)
  return calledOffFrom === 'running' ? 'IN_PROGRESS' : calledOffFrom.toUpperCase()
}

/** Jobnik's five priorities as numbers, far enough apart that an aging lane never passes into the next band. */
const bands = [
  { word: 'VERY_HIGH', number: 2000, from: 1500 },
  { word: 'HIGH', number: 1000, from: 500 },
  { word: 'MEDIUM', number: 0, from: -499 },
  { word: 'LOW', number: -1000, from: -1499 },
  { word: 'VERY_LOW', number: -2000, from: -1_000_000 },
] as const

export type Priority = (typeof bands)[number]['word']

export const priorityWords: readonly Priority[] = bands.map(({ word }) => word)

/** Where each band begins, the lowest first. */
export const bandStarts: readonly number[] = bands.map(({ from }) => from).toReversed()

const bandOf = (priority: Priority) => bands.findIndex(({ word }) => word === priority)

export const numberFor = (priority: Priority) => bands[bandOf(priority)]!.number

/** The nearest word for any number, because jobs may come from other clients. */
export const priorityFor = (number: number): Priority => bands.find(({ from }) => number >= from)!.word

/** The priorities that a word stands for. */
export function rangeOf(priority: Priority): { readonly priorityFrom: number; readonly priorityTo: number } {
  const at = bandOf(priority)
  return { priorityFrom: bands[at]!.from, priorityTo: at === 0 ? 1_000_000 : bands[at - 1]!.from - 1 }
}

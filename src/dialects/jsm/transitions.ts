/**
 * The document's two tables of transitions, as one: which request is heard in which state. What leads back to queued (a
 * retry, a lost lease) nobody asks for.
 */
import type { TaskState } from '../../kernel/task.ts'
import { words } from './words.ts'

export const states = ['queued', 'assigned', 'running', 'succeeded', 'failed', 'cancelled', 'dead_lettered'] as const

export type State = (typeof states)[number]

const heard = {
  claim: ['queued'],
  start: ['assigned'],
  /** The first one says that the job has begun. */
  heartbeat: ['assigned', 'running'],
  /** What was never started cannot have been done, or have failed. */
  succeed: ['running'],
  fail: ['running'],
  cancel: ['queued', 'assigned', 'running'],
  dead_letter: ['queued', 'assigned', 'running'],
  retry: ['dead_lettered'],
} as const satisfies Record<string, readonly State[]>

export type Request = keyof typeof heard

/** None of our states lacks a word here, and each word is plain. */
export const stateOf = (state: TaskState) => words.task![state] as State

export function isHeard(request: Request, state: State): boolean {
  return (heard[request] as readonly State[]).includes(state)
}

export function allowedIn(state: State): Request[] {
  return (Object.keys(heard) as Request[]).filter(request => isHeard(request, state))
}

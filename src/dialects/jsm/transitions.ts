/**
 * The document's two tables of transitions as one: which request is accepted in which state. No request leads back to
 * queued; a retry or a lost lease does.
 */
import type { TaskState } from '../../kernel/task.ts'
import { words } from './words.ts'

export const states = ['queued', 'assigned', 'running', 'succeeded', 'failed', 'cancelled', 'dead_lettered'] as const

export type State = (typeof states)[number]

const acceptedIn = {
  claim: ['queued'],
  start: ['assigned'],
  /** The first heartbeat also starts the job. */
  heartbeat: ['assigned', 'running'],
  /** A job that was never started cannot have succeeded or failed. */
  succeed: ['running'],
  fail: ['running'],
  cancel: ['queued', 'assigned', 'running'],
  dead_letter: ['queued', 'assigned', 'running'],
  retry: ['dead_lettered'],
} as const satisfies Record<string, readonly State[]>

export type Move = keyof typeof acceptedIn

/** Every task state has a word here, and no word depends on more than the state. */
export const stateOf = (state: TaskState) => words.task![state] as State

export function isAccepted(move: Move, state: State): boolean {
  return (acceptedIn[move] as readonly State[]).includes(state)
}

export function movesFrom(state: State): Move[] {
  return (Object.keys(acceptedIn) as Move[]).filter(move => isAccepted(move, state))
}

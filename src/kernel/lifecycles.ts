/** All four lifecycles, and questions about their states: has it ended, did it end well, was it executed. */
import { artifactLifecycle } from './artifact.ts'
import { jobLifecycle } from './job.ts'
import * as lifecycle from './lifecycle.ts'
import { Problem } from './problem.ts'
import { stageLifecycle } from './stage.ts'
import { taskLifecycle } from './task.ts'

const tables = { task: taskLifecycle, stage: stageLifecycle, job: jobLifecycle, artifact: artifactLifecycle }
export const lifecycles: readonly lifecycle.Lifecycle[] = Object.values(tables)

/** A kind of object that has states. */
export type Entity = keyof typeof tables
/** The states of a task, stage, job or artifact. */
export type StateOfEntity<E extends Entity> = lifecycle.StateOf<(typeof tables)[E]>

/**
 * Whether a task (or stage, job, artifact) has ended. It changes again only if an operator revives it.
 *
 * @example isTerminal('skipped') // true
 * @example isTerminal('partial', 'job') // true
 */
export function isTerminal<E extends Entity = 'task'>(state: StateOfEntity<E>, entity?: E): boolean {
  return lifecycle.isFinal(tableOf(state, entity), state)
}

/**
 * Whether it ended well; for a task, succeeded or skipped.
 *
 * @example isSuccessfulTerminal('failed') // false
 */
export function isSuccessfulTerminal<E extends Entity = 'task'>(state: StateOfEntity<E>, entity?: E): boolean {
  return lifecycle.isGoodFinal(tableOf(state, entity), state)
}

/**
 * Whether the work was executed or ran out of time. True for every final state except cancelled and skipped.
 *
 * @example wasExecuted('cancelled') // false
 */
export function wasExecuted<E extends Entity = 'task'>(state: StateOfEntity<E>, entity?: E): boolean {
  return lifecycle.wasExecuted(tableOf(state, entity), state)
}

/**
 * The final states of a task (or stage, job, artifact).
 *
 * @example terminalStates('job') // ['succeeded', 'partial', 'failed', 'cancelled', 'expired']
 */
export function terminalStates<E extends Entity = 'task'>(entity?: E): StateOfEntity<E>[] {
  return lifecycle.statesOf(tableOf(undefined, entity), 'final') as StateOfEntity<E>[]
}

function tableOf(state: string | undefined, entity: Entity = 'task'): lifecycle.Lifecycle {
  if (!Object.hasOwn(tables, entity)) throw invalid('entity', Object.keys(tables))
  const table: lifecycle.Lifecycle = tables[entity]
  if (state !== undefined && !Object.hasOwn(table.states, state)) throw invalid('state', Object.keys(table.states))
  return table
}

function invalid(option: string, known: readonly string[]): Problem {
  return new Problem('OPTION_INVALID', { at: 'states', option, must: `be one of ${known.join(', ')}` })
}

/** The colour and the mark of a state, derived from its properties in the lifecycle. */
import { artifactLifecycle } from '../kernel/artifact.ts'
import { jobLifecycle } from '../kernel/job.ts'
import { stageLifecycle } from '../kernel/stage.ts'
import { taskLifecycle } from '../kernel/task.ts'
import { type Style, type Styled, styled } from './styled-line.ts'

const lifecycles = {
  job: jobLifecycle,
  stage: stageLifecycle,
  task: taskLifecycle,
  artifact: artifactLifecycle,
} as const
export type Entity = keyof typeof lifecycles

interface Traits {
  readonly kind: 'open' | 'held' | 'final'
  readonly outcome?: 'good' | 'mixed' | 'bad'
  readonly executed?: boolean
  readonly hold?: boolean
}

function traitsOf(entity: Entity, state: string): Traits {
  const states = lifecycles[entity].states as Readonly<Record<string, Traits>>
  return states[state] ?? { kind: 'open' }
}

export const hasEnded = (entity: Entity, state: string): boolean => traitsOf(entity, state).kind === 'final'

export const endedBadly = (entity: Entity, state: string): boolean => traitsOf(entity, state).outcome === 'bad'

function styleOf({ kind, outcome, executed, hold }: Traits): Style {
  if (outcome !== undefined) return executed === undefined && outcome === 'good' ? 'dim' : outcomeStyles[outcome]
  if (hold) return 'yellow'
  return kind === 'held' || executed ? 'cyan' : 'dim'
}

const outcomeStyles = { good: 'green', mixed: 'yellow', bad: 'red' } as const

/** `state` is null with --vocabulary, if the other system has no such state. */
export function styledState(entity: Entity, state: string | null): Styled {
  return state === null ? styled('dim', '–') : styled(styleOf(traitsOf(entity, state)), state)
}

export function stateMark(entity: Entity, state: string): Styled {
  const traits = traitsOf(entity, state)
  const style = styleOf(traits)
  if (traits.outcome !== undefined) {
    return styled(style, { good: traits.executed ? '✓' : '–', mixed: '~', bad: '✗' }[traits.outcome])
  }
  if (traits.hold) return styled(style, '‖')
  return styled(style, traits.executed || traits.kind === 'held' ? '▸' : '·')
}

/** Replaces the underscores of a cause by spaces. */
export function readableCause(cause: string | null): string | null {
  return cause !== null && /^[a-z]+(_[a-z]+)+$/.test(cause) ? cause.replaceAll('_', ' ') : cause
}

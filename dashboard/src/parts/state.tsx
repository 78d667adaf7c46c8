/** A state as a badge. Its colour follows from the lifecycle table, so a new state has one at once. */
import { Badge } from '@mantine/core'
import { artifactLifecycle } from '../../../src/kernel/artifact.ts'
import { jobLifecycle } from '../../../src/kernel/job.ts'
import type { Lifecycle, State as LifecycleState } from '../../../src/kernel/lifecycle.ts'
import { stageLifecycle } from '../../../src/kernel/stage.ts'
import { taskLifecycle } from '../../../src/kernel/task.ts'

export type Entity = 'job' | 'stage' | 'task' | 'artifact'

export const lifecycleOf: Readonly<Record<Entity, Lifecycle>> = {
  job: jobLifecycle,
  stage: stageLifecycle,
  task: taskLifecycle,
  artifact: artifactLifecycle,
}

const outcomes = { good: 'teal', mixed: 'yellow', bad: 'red' } as const

export function colourOf(entity: Entity, state: string): string {
  const facts: LifecycleState | undefined = lifecycleOf[entity].states[state]
  if (facts?.outcome !== undefined)
    return state === 'cancelled' || state === 'skipped' ? 'gray' : outcomes[facts.outcome]
  if (facts?.hold) return 'orange'
  return facts?.kind === 'held' || facts?.executed ? 'blue' : 'gray'
}

export function State({ of, state }: { of: Entity; state: string }) {
  const { means } = lifecycleOf[of].states[state] ?? { means: state }
  return (
    <Badge color={colourOf(of, state)} variant="light" radius="sm" title={means} className="state">
      {state.replaceAll('_', ' ')}
    </Badge>
  )
}

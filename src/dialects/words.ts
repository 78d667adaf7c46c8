/** The names of Pawl's states in other systems: one table per dialect. */
import type { ArtifactState } from '../kernel/artifact.ts'
import type { JobState } from '../kernel/job.ts'
import type { StageState } from '../kernel/stage.ts'
import type { TaskState } from '../kernel/task.ts'
import type { StageView } from '../protocol/jobs/jobs.ts'
import type { TaskView } from '../protocol/tasks/tasks.ts'

/** A word that depends on more than the state. */
export interface ComputedWord<View> {
  /** Describes the word in docs/dialects.md. */
  readonly label: string
  /** By the database's clock, in milliseconds. */
  of(view: View, now: number): string
}

/** null: the system has no word for this state. */
export type Word<View> = string | null | ComputedWord<View>

/** The fields that a word may depend on. An event has little more than the state. */
export type TaskFacts = Pick<TaskView, 'state'> & Partial<Pick<TaskView, 'runAt'>>
export interface StageFacts
  extends Pick<StageView, 'state'>,
    Partial<Pick<StageView, 'endsAs' | 'held' | 'calledOffFrom' | 'progress' | 'startedAt'>> {
  /** null: the stage has no gate. */
  readonly gate?: object | null
}
export interface JobFacts {
  readonly state: JobState
  readonly endsAs?: string | null
}
export interface ArtifactFacts {
  readonly state: ArtifactState
  readonly inPlace?: boolean
}

/** null: the system has no such entity. */
export interface Words {
  readonly task: Readonly<Record<TaskState, Word<TaskFacts>>> | null
  readonly stage: Readonly<Record<StageState, Word<StageFacts>>> | null
  readonly job: Readonly<Record<JobState, Word<JobFacts>>> | null
  readonly artifact: Readonly<Record<ArtifactState, Word<ArtifactFacts>>> | null
  /** The name of an event, if the system has names for events. */
  eventType?(event: { readonly entity: string; readonly type: string }): string | null
}

/** `now` is needed only where the word depends on the time. */
export function wordFor<State extends string, View extends { readonly state: State }>(
  table: Readonly<Record<State, Word<View>>> | null,
  view: View,
  now = 0,
): string | null {
  const word = table === null ? null : table[view.state]
  return word === null || typeof word === 'string' ? word : word.of(view, now)
}

/** The states that have this word. */
export function statesWithWord<State extends string>(
  table: Readonly<Record<State, Word<never>>>,
  word: string,
): readonly State[] {
  return (Object.keys(table) as State[]).filter(state => table[state] === word)
}

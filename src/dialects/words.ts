/** What another system calls our states: a table per dialect, of plain words where they will do. */
import type { ArtifactState } from '../kernel/artifact.ts'
import type { JobState } from '../kernel/job.ts'
import type { StageState } from '../kernel/stage.ts'
import type { TaskState } from '../kernel/task.ts'
import type { StageView } from '../protocol/jobs/jobs.ts'
import type { TaskView } from '../protocol/tasks/tasks.ts'

/** A word that depends on more than the state. */
export interface Depends<View> {
  /** How it is said in a table. */
  readonly says: string
  /** By the database's clock, in milliseconds. */
  of(view: View, now: number): string
}

/** null: it has no word for it. */
export type Word<View> = string | null | Depends<View>

/** As much of a view as a word may depend on; an event knows little more than the state. */
export type TaskFacts = Pick<TaskView, 'state'> & Partial<Pick<TaskView, 'runAt'>>
export interface StageFacts
  extends Pick<StageView, 'state'>,
    Partial<Pick<StageView, 'endsAs' | 'held' | 'calledOffFrom' | 'progress' | 'startedAt'>> {
  /** Null: it has none. */
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

/** null: the system knows no such thing. */
export interface Words {
  readonly task: Readonly<Record<TaskState, Word<TaskFacts>>> | null
  readonly stage: Readonly<Record<StageState, Word<StageFacts>>> | null
  readonly job: Readonly<Record<JobState, Word<JobFacts>>> | null
  readonly artifact: Readonly<Record<ArtifactState, Word<ArtifactFacts>>> | null
  /** What it calls an event, if it has names for them. */
  eventType?(event: { readonly entity: string; readonly type: string }): string | null
}

export function wordFor<State extends string, View extends { readonly state: State }>(
  table: Readonly<Record<State, Word<View>>> | null,
  view: View,
  now: number,
): string | null {
  const word = table === null ? null : table[view.state]
  return word === null || typeof word === 'string' ? word : word.of(view, now)
}

/** How a table says it. */
export function saidWord(word: Word<never>): string {
  return word === null ? '–' : typeof word === 'string' ? word : word.says
}

/** For states that only say that the end is decided: the word for that end. */
export function asItWillEnd<View extends { readonly endsAs?: string | null }>(
  ends: Readonly<Record<string, string>>,
): Depends<View> {
  return { says: 'as it will end', of: ({ endsAs }) => ends[endsAs ?? 'cancelled']! }
}

/** The states whose word, in this table, is one of these. */
export function statesCalled<State extends string>(
  table: Readonly<Record<State, Word<never>>>,
  word: string,
): readonly State[] {
  return (Object.keys(table) as State[]).filter(state => table[state] === word)
}

/** Tasks by name: with them, `enqueue` and `enqueueMany` check names and payloads when they are compiled. */
import { Problem } from '../../kernel/problem.ts'
import { closestWord } from '../../kernel/suggest.ts'
import type { TaskDefinition } from './new-task.ts'
import type { TaskHandle } from './results.ts'
import type { NewTaskItem, TaskOptions } from './tasks.ts'

/** The tasks of `pawl({ tasks })` or `connect({ tasks })`. The default, without them, accepts any name and payload. */
export type TaskRegistry = Readonly<Record<string, TaskDefinition>>

/** The payload that a task is enqueued with. */
export type PayloadOf<Task> = Task extends TaskDefinition<infer In, unknown> ? In : never

/** The result of a task, as it comes back from the store. */
export type OutputOf<Task> = Task extends TaskDefinition<unknown, infer Out> ? Out : never

/** The name of a task of the registry, or any task that `defineTask` has made. */
export type TaskName<Tasks extends TaskRegistry> = (keyof Tasks & string) | TaskDefinition

type Named<Tasks extends TaskRegistry, Name> = Name extends keyof Tasks ? Tasks[Name] : Name

/** Enqueues one task. Its definition, or its name in the registry, gives payload and result their types. */
export type Enqueue<Options, Tasks extends TaskRegistry = TaskRegistry> = <const Name extends TaskName<Tasks>>(
  task: Name,
  payload: PayloadOf<Named<Tasks, Name>>,
  options?: TaskOptions & Options,
) => Promise<TaskHandle<OutputOf<Named<Tasks, Name>>>>

/** A task to enqueue, by its name in the registry. */
export type TaskItem<Tasks extends TaskRegistry> = string extends keyof Tasks
  ? NewTaskItem
  : { readonly [Name in keyof Tasks & string]: ItemOf<Name, PayloadOf<Tasks[Name]>> }[keyof Tasks & string]

type ItemOf<Name extends string, Payload> = Omit<NewTaskItem, 'type' | 'payload'> & { readonly type: Name } & (
    | { readonly payload: Payload }
    // The payload may be missing where nothing is needed.
    | (unknown extends Payload ? { readonly payload?: unknown } : never)
  )

/** The definition that a name stands for. Without a registry, a name is a type, and its definition is not known. */
export function findTask(tasks: TaskRegistry | undefined, named: string | TaskDefinition): string | TaskDefinition {
  if (tasks === undefined || typeof named !== 'string') return named
  if (Object.hasOwn(tasks, named)) return tasks[named]!
  const meant = closestWord(named, Object.keys(tasks))
  throw new Problem('OPTION_UNKNOWN', { at: 'tasks', option: named, ...(meant !== undefined && { didYouMean: meant }) })
}

export const typeOf = (task: string | TaskDefinition) => (typeof task === 'string' ? task : task.type)

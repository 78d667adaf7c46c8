/** Handles of new tasks and jobs, which wait for the result. */
import type { ErrorCause } from '../../kernel/error-cause.ts'
import { jobLifecycle } from '../../kernel/job.ts'
import { isFinal, isGoodFinal, type Lifecycle } from '../../kernel/lifecycle.ts'
import { isTransient, Problem } from '../../kernel/problem.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import { checkOptions, type Fields, number, type OptionsOf } from '../../schema/check.ts'
import type { EndQuery } from '../call-options.ts'
import type { JobView } from '../jobs/jobs.ts'
import type { OperationMethods } from '../operations.ts'
import type { QueuedTask, TaskView } from './tasks.ts'

const resultFields = {
  /** How long to wait for the end. Default 60. */
  timeoutSeconds: number({ from: 0, to: 365 * 86_400 }),
} satisfies Fields
/** How long to wait for a result. */
export interface ResultOptions extends OptionsOf<typeof resultFields> {}

/** The return type of a function without a result. */
type Nothing = ReturnType<() => void>

/** A value as it comes back from the store, which keeps outputs as JSON: a Date becomes a string, and undefined null. */
export type Stored<Value> = unknown extends Value
  ? Value
  : Value extends { toJSON(): infer Json }
    ? Stored<Json>
    : Value extends Nothing
      ? null
      : Value extends readonly unknown[]
        ? { [Index in keyof Value]: Stored<Value[Index]> }
        : Value extends object
          ? StoredObject<Value>
          : Value

/** JSON has no key for a value that is undefined. */
type StoredObject<Value> = Flat<
  { [Name in Exclude<keyof Value, LostKeys<Value>>]: Stored<Value[Name]> } & {
    [Name in LostKeys<Value>]?: Stored<Exclude<Value[Name], undefined>>
  }
>
type LostKeys<Value> = {
  [Name in keyof Value]-?: unknown extends Value[Name] ? never : undefined extends Value[Name] ? Name : never
}[keyof Value]
type Flat<Value> = { [Name in keyof Value]: Value[Name] }

/** A new task, whose result can be awaited. */
export interface TaskHandle<Out = unknown> extends QueuedTask {
  /**
   * Waits until the task has ended, and returns its output. Throws `TaskFailed` if it did not succeed, and a problem
   * (`RESULT_TIMEOUT`) if it has not ended in time. The task keeps running, and the result can be awaited again.
   *
   * @example
   * const handle = await pawl.enqueue(resize, { file: 'a.png', width: 200 })
   * const { file } = await handle.result({ timeoutSeconds: 30 })
   */
  result(options?: ResultOptions): Promise<Out>
}

/** A new job, whose end can be awaited. */
export interface JobHandle extends JobView {
  /**
   * Waits until the job has ended, and returns it. Throws `JobFailed` if it failed, and a problem
   * (`RESULT_TIMEOUT`) if it has not ended in time. A job that is `partial` is returned.
   */
  result(options?: ResultOptions): Promise<JobView>
}

/** The task whose result was awaited did not succeed. `cause` is the error of its handler. */
export class TaskFailed extends Error {
  override readonly name = 'TaskFailed'
  readonly taskId: string
  /** The task as it ended. */
  readonly task: TaskView

  constructor(task: TaskView) {
    const why = task.error === null ? '' : `: ${task.error.message}`
    super(`Task ${task.type} (${task.id}) is ${stateName(task.state)}${why}`, {
      ...(task.error !== null && { cause: errorFrom(task.error) }),
    })
    this.taskId = task.id
    this.task = task
  }

  /** The state in which it ended. */
  get state() {
    return this.task.state
  }
}

/** The job whose result was awaited failed. `cause` is the failure of its first task that failed, if there is one. */
export class JobFailed extends Error {
  override readonly name = 'JobFailed'
  readonly jobId: string
  /** The job as it ended. */
  readonly job: JobView

  constructor(job: JobView, first: TaskView | undefined) {
    const cause = first && new TaskFailed(first)
    super(`Job ${job.name} (${job.id}) is ${stateName(job.state)}${cause ? `. ${cause.message}` : ''}`, {
      ...(cause !== undefined && { cause }),
    })
    this.jobId = job.id
    this.job = job
  }
}

const stateName = (state: string) => state.replace('_', ' ')

/** The error of a handler, as it was thrown in another process, with its causes. */
function errorFrom({ message, name, stack, cause, errors }: ErrorCause): Error {
  const options = cause === undefined ? {} : { cause: errorFrom(cause) }
  const error =
    errors === undefined ? new Error(message, options) : new AggregateError(errors.map(errorFrom), message, options)
  if (name !== undefined) error.name = name
  if (stack !== undefined) error.stack = stack
  return error
}

/** Adds `result` to the answer of an enqueue. It is not enumerable, so the answer can be stored and compared as before. */
export function taskHandle(api: Pick<OperationMethods, 'task'>, queued: QueuedTask): TaskHandle<never> {
  return withResult(queued, async options => {
    const task = await untilEnded(
      taskLifecycle,
      queued.id,
      (query, signal) => api.task(queued.id, query, signal),
      options,
    )
    if (task.state !== 'succeeded') throw new TaskFailed(task)
    return task.output as never
  })
}

/** Adds `result` to the answer of a submit. */
export function jobHandle(api: Pick<OperationMethods, 'job' | 'jobTasks'>, submitted: JobView): JobHandle {
  return withResult(submitted, async options => {
    const job = await untilEnded(
      jobLifecycle,
      submitted.id,
      (query, signal) => api.job(submitted.id, query, signal),
      options,
    )
    if (isGoodFinal(jobLifecycle, job.state) || job.state === 'partial') return job
    const { items } = await api.jobTasks(job.id, { state: ['failed', 'dead_lettered'], order: 'oldest', limit: 1 })
    throw new JobFailed(job, items[0])
  })
}

function withResult<Answer extends object, Result>(
  answer: Answer,
  result: (options?: ResultOptions) => Promise<Result>,
) {
  return Object.defineProperty(answer, 'result', { value: result }) as Answer & { result: typeof result }
}

const secondsPerRead = 30
const pauseMs = 500
const lateMs = 2000
const longestTimerMs = 2 ** 31 - 1

/** Retries while the store or the server is unavailable. */
async function untilEnded<State extends string, View extends { readonly state: State }>(
  lifecycle: Lifecycle<State>,
  id: string,
  read: (query: EndQuery, signal: AbortSignal) => Promise<View>,
  options: ResultOptions = {},
): Promise<View> {
  checkOptions(options, resultFields, 'result')
  const { timeoutSeconds = 60 } = options
  const until = performance.now() + timeoutSeconds * 1000
  // A server that does not answer must not hold the caller much longer.
  const late = AbortSignal.timeout(Math.min(Math.ceil(timeoutSeconds * 1000) + lateMs, longestTimerMs))
  for (;;) {
    const leftSeconds = Math.max(0, (until - performance.now()) / 1000)
    try {
      const view = await read({ waitSeconds: Math.min(leftSeconds, secondsPerRead) }, late)
      if (isFinal(lifecycle, view.state)) return view
      if (performance.now() >= until) throw new Problem('RESULT_TIMEOUT', { id, state: view.state, timeoutSeconds })
    } catch (error) {
      if (!isTransient(error)) throw error
      if (performance.now() + pauseMs >= until) throw new Problem('RESULT_TIMEOUT', { id, timeoutSeconds }, error)
      await new Promise(resolve => setTimeout(resolve, pauseMs))
    }
  }
}

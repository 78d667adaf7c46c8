import type { Context } from '../engine/context.ts'
import { findJobs, readJob, readStage } from '../engine/jobs/read-jobs.ts'
import { findTasks, readTask } from '../engine/tasks/read-tasks.ts'
import type { WakeSignal } from '../engine/wake.ts'
import { type JobState, jobLifecycle } from '../kernel/job.ts'
import { statesOf } from '../kernel/lifecycle.ts'
import { Problem } from '../kernel/problem.ts'
import { type StageState, stageLifecycle } from '../kernel/stage.ts'
import { type TaskState, taskLifecycle } from '../kernel/task.ts'
import type { JobView, StageView } from '../protocol/jobs/jobs.ts'
import type { TaskView } from '../protocol/tasks/tasks.ts'
import { checkOptions, type Fields, number, type OptionsOf, oneOf, text } from '../schema/check.ts'

/** Selects a task, job or stage by id, tasks by type or dedupeKey, or jobs by name. One match is enough. */
export type Selector =
  | { readonly id: string }
  | { readonly type: string }
  | { readonly dedupeKey: string }
  | { readonly name: string }

const optionFields = {
  /** Default 10. */
  withinSeconds: number({ from: 0, to: 3600 }),
} satisfies Fields

/** Options of `engine.waitFor`. */
export interface WaitOptions extends OptionsOf<typeof optionFields> {}

type Seen = TaskView | JobView | StageView

export interface WaitFor {
  (selector: { readonly name: string }, state: JobState, options?: WaitOptions): Promise<JobView>
  (
    selector: { readonly type: string } | { readonly dedupeKey: string },
    state: TaskState,
    options?: WaitOptions,
  ): Promise<TaskView>
  <T extends Seen = Seen>(
    selector: { readonly id: string },
    state: TaskState | JobState | StageState,
    options?: WaitOptions,
  ): Promise<T>
}

const states = [...statesOf(taskLifecycle), ...statesOf(jobLifecycle), ...statesOf(stageLifecycle)]
const selectorFields: Fields = { id: text(200), type: text(200), dedupeKey: text(500), name: text(200) }

/**
 * Reads again whenever the store may have changed; it does not poll. Reads through `context` are not counted as
 * changes.
 */
export function waitFor(context: Context, changes: WakeSignal): WaitFor {
  const wait = async (selector: Selector, state: string, options: WaitOptions = {}): Promise<Seen> => {
    checkOptions(selector, selectorFields, 'waitFor')
    checkOptions({ state }, { state: oneOf(states) }, 'waitFor')
    checkOptions(options, optionFields, 'waitFor')
    const { withinSeconds = 10 } = options
    const deadline = performance.now() + withinSeconds * 1000
    for (;;) {
      const changed = changes.next()
      const seen = await findMatching(context, selector)
      const found = seen.find(each => each.state === state)
      if (found !== undefined) return found
      const hasEnded = 'id' in selector && seen[0] !== undefined && seen[0].endedAt !== null
      if (hasEnded)
        throw new Error(`${JSON.stringify(selector)} has ended, but not as "${state}". ${describeSeen(seen)}`)
      if (!(await inTime(changed, deadline - performance.now()))) {
        throw new Error(
          `${JSON.stringify(selector)} was not "${state}" within ${withinSeconds} s. ${describeSeen(seen)}`,
        )
      }
    }
  }
  return wait as WaitFor
}

async function findMatching(context: Context, selector: Selector): Promise<Seen[]> {
  if ('name' in selector) return (await findJobs(context, { name: selector.name, limit: 1000 })).items
  if ('type' in selector) return (await findTasks(context, { type: selector.type, limit: 1000 })).items
  if ('id' in selector) {
    const reads: (() => Promise<Seen>)[] = [
      () => readTask(context, selector.id),
      () => readJob(context, selector.id),
      () => readStage(context, selector.id),
    ]
    for (const read of reads) {
      const found = await read().catch(notFound)
      if (found !== undefined) return [found]
    }
    return []
  }
  const { items } = await findTasks(context, { limit: 1000 })
  return items.filter(({ dedupeKey }) => dedupeKey === selector.dedupeKey)
}

function notFound(error: unknown): undefined {
  if (!(error instanceof Problem) || error.status !== 404) throw error
}

const maxDescribed = 10

/** Describes the objects that were seen instead. */
function describeSeen(seen: readonly Seen[]): string {
  if (seen.length === 0) return 'Nothing of this kind was seen.'
  const more = seen.length > maxDescribed ? `, and ${seen.length - maxDescribed} more` : ''
  return `Seen: ${seen.slice(0, maxDescribed).map(describe).join('; ')}${more}.`
}

function describe(one: Seen): string {
  if (!('type' in one)) {
    const stages = 'stages' in one ? `: ${one.stages.map(({ name, state }) => `${name} ${state}`).join(', ')}` : ''
    return `${one.name} ${one.id} is "${one.state}"${one.cause === null ? '' : ` (${one.cause})`}${stages}`
  }
  const tried = one.failures + one.losses > 0 ? ` after ${one.failures} failures and ${one.losses} losses` : ''
  const error = one.error === null ? '' : `, last error: ${one.error.message}`
  const waits = one.state === 'queued' || one.state === 'retrying' ? `, to run at ${one.runAt}` : ''
  return `${one.type} ${one.id} is "${one.state}"${tried}${waits}${error}`
}

/** Returns whether the promise settled in time. Always clears the timer. */
export async function inTime(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>(resolve => {
    timer = setTimeout(() => resolve(false), Math.max(0, ms))
  })
  const won = await Promise.race([promise.then(() => true), late])
  clearTimeout(timer)
  return won
}

import { setTimeout as sleep } from 'node:timers/promises'
import { type Context, logCorrelated } from '../engine/context.ts'
import { advanceJobsOfStages } from '../engine/jobs/advance-job.ts'
import { splitOnFailure } from '../engine/retry.ts'
import type { WakeSignal } from '../engine/wake.ts'
import type { Verdict } from '../kernel/decide.ts'
import type { Sql } from '../store/driver/sql.ts'
import {
  type LockedTask,
  lockTasks,
  stagesOfUpdates,
  type TaskUpdate,
  writeTaskUpdates,
} from '../store/tasks/task-updates.ts'

/** A repeated maintenance job. It may run in many processes at once, and may die at any point. */
export interface Chore {
  readonly name: string
  readonly everySeconds: number
  /** Starts the next run early when there is work. */
  wakeSignal?(context: Context): WakeSignal
  /** One run. The result is logged; `more: true` asks for another run at once. */
  run(context: Context): Promise<Record<string, unknown> & { more?: boolean }>
}

/** Repeats one chore until the signal aborts. A run that fails is logged and tried again; it never ends the loop. */
export async function keepDoing(chore: Chore, context: Context, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    let waitSeconds = chore.everySeconds
    const woken = chore.wakeSignal?.(context).next() ?? new Promise(() => {})
    const end = context.activities.begin(`chore ${chore.name}`)
    try {
      const did = await chore.run(context)
      if (did.more === true) waitSeconds = 0
      const isNews = Object.values(did).some(value => value !== 0 && value !== false)
      if (isNews) context.log('chore.done', { chore: chore.name, ...did })
    } catch (error) {
      context.log('chore.failed', { chore: chore.name, error: String(error) })
    } finally {
      end()
    }
    // Random intervals keep babysitters that started together from running in step. They are never longer than
    // promised.
    const spread = 0.5 + Math.random() / 2
    const awake = new AbortController()
    const asleep = sleep(waitSeconds * 1000 * spread, undefined, { signal: AbortSignal.any([signal, awake.signal]) })
    await Promise.race([asleep.catch(() => {}), woken])
    awake.abort()
  }
}

/**
 * Locks the tasks that a chore found, checks them again, and writes down the verdicts. Tasks locked by somebody else
 * are left alone. A task that cannot be written is counted and never holds up the others.
 */
export async function applyVerdicts(
  context: Context,
  ids: readonly string[],
  decide: (task: LockedTask) => Verdict | undefined,
): Promise<{ moved: number; failed: number }> {
  const { sql, wake } = context
  const { done, failed } = await splitTasks(context, ids, batch =>
    sql.begin(async tx => {
      const rulings: TaskUpdate[] = []
      for (const task of await lockTasks(tx, batch, 'pass over')) {
        const verdict = decide(task)
        if (verdict?.ok) rulings.push({ task, steps: verdict.steps, patch: verdict.patch })
      }
      await writeTaskUpdates(tx, rulings, 'babysitter')
      return rulings
    }),
  )
  if (done.length > 0) wake.notify([...new Set(done.map(({ task }) => task.queue))])
  await advanceJobsOfStages(context, stagesOfUpdates(done))
  return { moved: done.length, failed }
}

/** Runs a batch of tasks. Tasks that make it fail are logged and counted, and the others are written without them. */
export async function splitTasks<Result>(
  context: Context,
  ids: readonly string[],
  run: (ids: readonly string[]) => Promise<Result[]>,
): Promise<{ done: Result[]; failed: number }> {
  const failures: [id: string, error: unknown][] = []
  const results = await splitOnFailure<string, Result | undefined>(ids, run, (id, error) => {
    failures.push([id, error])
    return undefined
  })
  for (const [id, error] of failures) await logFailure(context, 'task', id, error)
  return { done: results.filter(result => result !== undefined), failed: failures.length }
}

/** Logs an item that could not be written, with its correlation id. */
export function logFailure(context: Context, entity: 'task' | 'job', id: string, error: unknown): Promise<void> {
  return logCorrelated(context, `${entity}.unwritable`, { entity, id }, { id, error: String(error) })
}

/** Maximum number of failed items to skip. Beyond that, all are tried again. */
const maxSkipped = 10_000

/**
 * Applies `work` to each item found, up to `limit` per run. An item that fails is logged, counted, and does not hold up
 * others, neither in this run nor in the next: failed items would be found again, and enough of them would leave no
 * room for the items behind them. So they are skipped until all others have had their turn, and then tried again. The
 * list of failures is kept in memory only; another babysitter just tries them once more.
 */
export function fairBatches<Item extends string | { readonly id: string }>(
  limit: number,
  find: (sql: Sql, limit: number, except: readonly string[]) => Promise<Item[]>,
  work: (context: Context, item: Item) => Promise<unknown>,
  logFailed: (context: Context, item: Item, error: unknown) => Promise<void>,
) {
  const failedIn = new WeakMap<Sql, readonly string[]>()
  return async (context: Context) => {
    const { sql } = context
    const except = failedIn.get(sql) ?? []
    const items = await find(sql, limit, except)
    const failures: [item: Item, error: unknown][] = []
    for (const item of items) await work(context, item).catch(error => failures.push([item, error]))
    const isFull = items.length === limit
    const skipped = [...except, ...failures.map(([item]) => (typeof item === 'string' ? item : item.id))]
    failedIn.set(sql, isFull && skipped.length < maxSkipped ? skipped : [])
    for (const [item, error] of failures) await logFailed(context, item, error)
    // If the batch is full, there may be more items than were found.
    return { done: items.length - failures.length, failed: failures.length, isFull }
  }
}

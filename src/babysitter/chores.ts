import { splitting } from '../engine/split.ts'
import { endGrace, expire } from '../kernel/decide.ts'
import { firstIdAt } from '../kernel/id.ts'
import { forget, graceOver, oldTasks, overdueTasks, removeTasks } from '../store/chores.ts'
import { clockMs } from '../store/clock.ts'
import { brokenRules } from '../store/integrity.ts'
import { staleQueues } from '../store/stale.ts'
import type { Chore } from './chore.ts'
import { judge } from './judge.ts'

const batch = 500

/** Ends tasks whose time to live has passed, held or not. */
export const expireTasks: Chore = {
  name: 'expire',
  everySeconds: 1,
  async run(context) {
    const { ids, looked } = await overdueTasks(context.sql, batch)
    const { moved, failed } = await judge(context, ids, task => (task.overdue ? expire(task) : undefined))
    const gone = looked - ids.length
    return { expired: moved, failed, more: looked === batch && moved + gone > 0 }
  },
}

/** Makes soft cancels hard when their grace has passed. */
export const endGraces: Chore = {
  name: 'end-graces',
  everySeconds: 1,
  async run(context) {
    const ids = await graceOver(context.sql, batch)
    const { moved, failed } = await judge(context, ids, task => {
      const isOver = task.cancelling && task.cancelledForSeconds! >= task.settings.graceSeconds
      return isOver ? endGrace(task) : undefined
    })
    return { cancelled: moved, failed, more: moved === batch }
  },
}

/** Removes what has been kept for long enough, a stretch of the table at a time. */
export function retention(): Chore {
  const first = '00000000-0000-0000-0000-000000000000'
  let after = first
  return {
    name: 'retention',
    everySeconds: 10,
    async run({ sql, log }) {
      const { ids, next } = await oldTasks(sql, after, 5000)
      after = next ?? first
      let failed = 0
      const gone = await splitting<string, string | undefined>(
        ids,
        // In a transaction, for only its rollback says that the locks of a part that failed are given up.
        part => sql.begin(tx => removeTasks(tx, part)),
        (id, error) => {
          failed += 1
          log('task.unruly', { id, error: String(error) })
          return undefined
        },
      )
      const removed = gone.length - failed
      const { pulses, keys, sessions, changes } = await forget(sql)
      return { removed, failed, pulses, keys, sessions, changes, more: next !== null && removed > 0 }
    },
  }
}

/** Raises the alarm about queues whose work is due and that nobody serves. */
export const watchQueues: Chore = {
  name: 'watch-queues',
  everySeconds: 30,
  async run({ sql, log }) {
    const stale = await staleQueues(sql, 60)
    for (const { queue, due, oldestSeconds } of stale) {
      log('queue.stale', { queue, due, oldestSeconds, todo: 'No worker serves this queue: start one.' })
    }
    return { stale: stale.length }
  },
}

/** Raises the alarm if a rule is broken by anything that was queued in the last quarter of an hour. */
export const watchIntegrity: Chore = {
  name: 'watch-integrity',
  everySeconds: 60,
  async run({ sql, log }) {
    const broken = await brokenRules(sql, firstIdAt((await clockMs(sql)) - 15 * 60_000))
    for (const rule of broken) log('integrity.broken', { ...rule })
    return { broken: broken.length }
  },
}

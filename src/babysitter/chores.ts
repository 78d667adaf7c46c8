import { splitting } from '../engine/split.ts'
import { endGrace, expire } from '../kernel/decide.ts'
import { firstIdAt } from '../kernel/id.ts'
import { defaultSettings } from '../kernel/settings.ts'
import { brokenRules } from '../store/admin/integrity.ts'
import { countMoves, deleteOldStats, recordQueueDepths } from '../store/admin/stats.ts'
import { clockMs } from '../store/driver/clock.ts'
import { deleteOldChanges, startOfChangeScan } from '../store/feed/delete-old-changes.ts'
import { currentGeneration } from '../store/feed/generation.ts'
import { findUnservedQueues } from '../store/flow/unserved-queues.ts'
import { deleteFreedIds } from '../store/tasks/chosen-ids.ts'
import { deleteOldLogLines } from '../store/tasks/logs.ts'
import { deleteOldRedrives } from '../store/tasks/redrive.ts'
import {
  deleteExpiredRecords,
  deleteTasks,
  findExpiredCancels,
  findExpiredTasks,
  findTasksPastRetention,
} from '../store/tasks/task-chores.ts'
import type { Chore } from './chore.ts'
import { judge } from './judge.ts'
import { tellUnruly, type Unruly } from './tell-unruly.ts'

const batch = 500

/** Ends tasks whose time to live has passed, held or not. */
export const expireTasks: Chore = {
  name: 'expire',
  everySeconds: 1,
  async run(context) {
    const { ids, looked } = await findExpiredTasks(context.sql, batch)
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
    const ids = await findExpiredCancels(context.sql, batch)
    const { moved, failed } = await judge(context, ids, task => {
      const isOver = task.cancelling && task.cancelledForSeconds! >= task.settings.graceSeconds
      return isOver ? endGrace(task) : undefined
    })
    return { cancelled: moved, failed, more: moved === batch }
  },
}

export interface RetentionOptions {
  /** How long the lines that handlers log are kept; they go with their task at the latest. Default: 7 days. */
  readonly keepLogSeconds?: number
}

/** Removes what has been kept for long enough, a stretch of the table at a time. */
export function retention({ keepLogSeconds = 7 * 86_400 }: RetentionOptions = {}): Chore {
  const first = '00000000-0000-0000-0000-000000000000'
  let after = first
  let scan = startOfChangeScan
  return {
    name: 'retention',
    everySeconds: 10,
    async run(context) {
      const { sql } = context
      const { ids, next } = await findTasksPastRetention(sql, after, 5000)
      after = next ?? first
      const unruly: Unruly[] = []
      const gone = await splitting<string, string | undefined>(
        ids,
        // In a transaction, for only its rollback says that the locks of a part that failed are given up.
        part => sql.begin(tx => deleteTasks(tx, part)),
        (id, error) => {
          unruly.push({ id, error })
          return undefined
        },
      )
      await tellUnruly(context, 'task', unruly)
      const failed = unruly.length
      const removed = gone.length - failed
      const { pulses, keys, sessions } = await deleteExpiredRecords(sql)
      const { deleted: changes, ...scanned } = await deleteOldChanges(sql, scan)
      scan = scanned.scan
      const lines = await deleteOldLogLines(sql, keepLogSeconds)
      const minutes = await deleteOldStats(sql)
      const redrives = await deleteOldRedrives(sql, defaultSettings.keepSeconds)
      const freed = await deleteFreedIds(sql)
      const more = next !== null && removed > 0
      return { removed, failed, pulses, keys, sessions, changes, lines, minutes, redrives, freed, more }
    },
  }
}

const movesPerBatch = 2000
const batchesPerLook = 10

/**
 * Counts what has happened to tasks, for statistics and metrics. It takes a share of the database and no more: where
 * tasks move faster than this, it falls behind and catches up later.
 */
export const countEvents: Chore = {
  name: 'count',
  everySeconds: 1,
  async run({ sql }) {
    // After a failover, counting starts anew in the new generation.
    await currentGeneration(sql)
    let counted = 0
    for (let batch = 0; batch < batchesPerLook; batch++) {
      const { events, isAll } = await countMoves(sql, movesPerBatch)
      counted += events
      if (isAll) break
    }
    return { counted }
  },
}

/** Notes how deep the queues are, and raises the alarm about those whose work is due and that nobody serves. */
export const watchQueues: Chore = {
  name: 'watch-queues',
  everySeconds: 30,
  async run({ sql, log }) {
    await recordQueueDepths(sql)
    const stale = await findUnservedQueues(sql, 60)
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

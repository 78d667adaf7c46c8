import { listInputs } from '../engine/files/list-inputs.ts'
import { promoteFiles, sweepFiles, sweepStagings } from '../engine/files/promote.ts'
import { continueRedrive, logRedriveFailure } from '../engine/tasks/redrive.ts'
import { endGrace, expire } from '../kernel/decide.ts'
import { laneRank } from '../kernel/rank.ts'
import { defaultSettings } from '../kernel/settings.ts'
import { brokenRules, startOfWatch } from '../store/admin/integrity.ts'
import { countMoves, deleteOldStats, recordQueueDepths } from '../store/admin/stats.ts'
import { deleteOldChanges, startOfChangeScan } from '../store/feed/delete-old-changes.ts'
import { currentGeneration } from '../store/feed/generation.ts'
import { openLanes, setRanks } from '../store/flow/lanes.ts'
import { findUnservedQueues } from '../store/flow/queue-depths.ts'
import { deleteFreedIds } from '../store/tasks/idempotency.ts'
import { deleteOldLogLines } from '../store/tasks/logs.ts'
import { deleteOldRedrives, findAbandonedRedrives } from '../store/tasks/redrive.ts'
import {
  deleteExpiredRecords,
  deleteTasks,
  findExpiredCancels,
  findExpiredTasks,
  findTasksPastRetention,
} from '../store/tasks/task-chores.ts'
import { applyVerdicts, type Chore, fairBatches, splitTasks } from './chore.ts'

const batch = 500

/** Ends tasks whose time to live has passed, held or not. */
export const expireTasks: Chore = {
  name: 'expire',
  everySeconds: 1,
  async run(context) {
    const { ids, looked } = await findExpiredTasks(context.sql, batch)
    const { moved, failed } = await applyVerdicts(context, ids, task => (task.overdue ? expire(task) : undefined))
    const gone = looked - ids.length
    return { expired: moved, failed, more: looked === batch && moved + gone > 0 }
  },
}

/** Turns soft cancels into hard ones when their grace period has passed. */
export const endGraces: Chore = {
  name: 'end-graces',
  everySeconds: 1,
  async run(context) {
    const ids = await findExpiredCancels(context.sql, batch)
    const { moved, failed } = await applyVerdicts(context, ids, task => {
      const isOver = task.cancelling && task.cancelledForSeconds! >= task.settings.graceSeconds
      return isOver ? endGrace(task) : undefined
    })
    return { cancelled: moved, failed, more: moved === batch }
  },
}

export interface RetentionOptions {
  /** How long log lines of handlers are kept, at most as long as their task. Default: 7 days. */
  readonly keepLogSeconds?: number
}

const tasksPerStretch = 5000
/** A run passes over this many stretches without expired tasks. With one per run, a large table would take hours. */
const maxEmptyStretches = 10

/** Removes expired data, one range of the table at a time. */
export function retention({ keepLogSeconds = 7 * 86_400 }: RetentionOptions = {}): Chore {
  const first = '00000000-0000-0000-0000-000000000000'
  let after = first
  let scan = startOfChangeScan
  return {
    name: 'retention',
    everySeconds: 10,
    async run(context) {
      const { sql } = context
      let { ids, next } = await findTasksPastRetention(sql, after, tasksPerStretch)
      for (let empty = 1; ids.length === 0 && next !== null && empty < maxEmptyStretches; empty++) {
        ;({ ids, next } = await findTasksPastRetention(sql, next, tasksPerStretch))
      }
      after = next ?? first
      // In transactions of their own, because only a rollback guarantees that a failed part has released its locks.
      const { done, failed } = await splitTasks(context, ids, part => sql.begin(tx => deleteTasks(tx, part)))
      const removed = done.length
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
const batchesPerRun = 10

/**
 * Counts the transitions of tasks for statistics and metrics. It uses a limited share of the database: if tasks move
 * faster, it falls behind and catches up later.
 */
export const countEvents: Chore = {
  name: 'count',
  everySeconds: 1,
  async run({ sql }) {
    // After a failover, counting starts again in the new generation.
    await currentGeneration(sql)
    let counted = 0
    for (let batch = 0; batch < batchesPerRun; batch++) {
      const { events, isAll } = await countMoves(sql, movesPerBatch)
      counted += events
      if (isAll) break
    }
    return { counted }
  },
}

/** Records the depth of the queues, and reports queues with due work that no worker serves. */
export const watchQueues: Chore = {
  name: 'watch-queues',
  everySeconds: 30,
  async run({ sql, log }) {
    await recordQueueDepths(sql)
    const { queues, others } = await findUnservedQueues(sql, 60)
    for (const { queue, due, oldestSeconds } of queues) {
      log('queue.stale', { queue, due, oldestSeconds, todo: 'No worker serves this queue. Start one.' })
    }
    if (others > 0) log('queues.stale', { others, todo: 'No worker serves these queues either. Run `pawl queues`.' })
    return { stale: queues.length + others }
  },
}

/** A busy store creates more than these. `pawl doctor` looks at all of them. */
const mostWatched = { seconds: 15 * 60, rows: 20_000 }

/** Reports integrity rules that are broken by what was created in the last 15 minutes, at most the newest rows. */
export const watchIntegrity: Chore = {
  name: 'watch-integrity',
  everySeconds: 60,
  async run({ sql, log }) {
    const broken = await brokenRules(sql, await startOfWatch(sql, mostWatched))
    for (const rule of broken) log('integrity.broken', { ...rule })
    return { broken: broken.length }
  },
}

const lanesPerRun = 1000

/**
 * Raises the rank of lanes whose work waits and resets it when nothing waits, one batch of lanes at a time. Concurrent
 * babysitters write the same ranks; the next run corrects a late write.
 */
export function ageLanes(): Chore {
  let after = 0
  return {
    name: 'age-lanes',
    everySeconds: 5,
    async run({ sql }) {
      const lanes = await openLanes(sql, after, lanesPerRun)
      after = lanes.length < lanesPerRun ? 0 : lanes.at(-1)!.id
      const moved = lanes.flatMap(lane => (laneRank(lane) === lane.rank ? [] : [{ ...lane, rank: laneRank(lane) }]))
      const aged = moved.length === 0 ? 0 : await setRanks(sql, moved)
      return { aged, more: after > 0 && aged > 0 }
    },
  }
}

/** Dead letters of one redrive per run, so that other redrives get their share. */
const lettersPerRun = 5000

/** Continues redrives whose process died, or whose caller's transaction has committed. */
export function continueRedrives(olderThanSeconds = 3): Chore {
  let redriven = 0
  const continueEach = fairBatches(
    10,
    (sql, limit, except) => findAbandonedRedrives(sql, olderThanSeconds, limit, except),
    async (context, id) => {
      redriven += (await continueRedrive(context, context.sql, id, lettersPerRun)).redriven
    },
    logRedriveFailure,
  )
  return {
    name: 'continue-redrives',
    everySeconds: 1,
    async run(context) {
      redriven = 0
      const { failed } = await continueEach(context)
      return { redriven, failed }
    },
  }
}

/** Lists the inputs of stages, and queues their tasks. */
export const findInputs: Chore = {
  name: 'find-inputs',
  everySeconds: 1,
  wakeSignal: ({ fileSignal }) => fileSignal,
  run: listInputs,
}

/** Moves the outputs of successful attempts to their final location. */
export const putInPlace: Chore = {
  name: 'put-in-place',
  everySeconds: 1,
  wakeSignal: ({ fileSignal }) => fileSignal,
  run: promoteFiles,
}

/** Removes uploads of attempts that did not win, and late uploads of workers that had lost their lease. */
export const sweepUploads: Chore = {
  name: 'sweep-uploads',
  everySeconds: 10,
  async run(context) {
    const { swept } = await sweepFiles(context)
    const { strays } = await sweepStagings(context)
    return { swept, strays }
  },
}

import { otherName } from '../kernel/bounded-names.ts'
import type { Call } from '../protocol/call-options.ts'
import type { ClaimsRequest, OneOutcome } from '../protocol/tasks/sync.ts'
import { type CountedNames, countByState } from '../store/admin/count-by-state.ts'
import { countDeadLetters, readTotals, type TypesToName } from '../store/admin/stats.ts'
import { clockMs } from '../store/driver/clock.ts'
import { feedLag } from '../store/feed/feed.ts'
import { deepestQueues, type QueuesToName } from '../store/flow/queue-depths.ts'
import { reasonsOf } from '../store/tasks/read-tasks.ts'
import * as keys from './admin/keys.ts'
import type { Context } from './context.ts'
import { inputsFound } from './files/inputs-found.ts'
import { setPriority } from './jobs/job-control.ts'
import { countTasksOf, countTasksOfStages } from './jobs/read-jobs.ts'
import type { ControlCall } from './tasks/control.ts'
import * as oneTask from './tasks/one-task.ts'
import { readClaimedTask, readQueuesOf } from './tasks/read-tasks.ts'

/** Types and queues in metrics, unless the caller names others. */
const unnamed = { named: [], most: 1000, others: otherName }

export type Internals = ReturnType<typeof internalsOf>

/** Use cases of servers, dialects and commands that are no operations of the API. */
export function internalsOf(context: Context) {
  const { sql } = context
  return {
    /** The key with this secret; undefined: there is none, or it was revoked. */
    keyOf: (secret: string) => keys.keyOf(context, secret),
    anyKeys: () => keys.anyKeys(context),
    queuesOf: (taskIds: readonly unknown[]) => readQueuesOf(context, taskIds),
    /** For metrics: totals on which all servers of one database agree. */
    totals: async (types: TypesToName = unnamed, queues: QueuesToName = unnamed) => ({
      moves: await readTotals(sql, types),
      queues: await deepestQueues(sql, queues),
      deadLetters: await countDeadLetters(sql),
      feedLagSeconds: await feedLag(sql),
    }),
    /** The deepest queues, and all others as one. */
    deepestQueues: (names: QueuesToName) => deepestQueues(sql, names),
    /** Counts jobs, stages and tasks by state. */
    countsByState: (names: CountedNames) => countByState(sql, names),
    /** Why each of these tasks is in its state, where a reason was given. */
    reasonsOf: (taskIds: readonly string[]) => reasonsOf(sql, taskIds),
    countTasks: (jobId: string) => countTasksOf(context, jobId),
    taskCounts: (stageIds: readonly string[]) => countTasksOfStages(context, stageIds),
    /** Resolves when the inputs of a job's open stages have become tasks, or the time is over. */
    inputsFound: (jobId: string, waitSeconds: number, signal?: AbortSignal) =>
      inputsFound(context, jobId, waitSeconds, signal),
    setJobPriority: (id: string, priority: number, call?: ControlCall) => setPriority(context, id, priority, call),
    /** Claims and starts tasks, and answers with the whole tasks. */
    take: (request: Omit<ClaimsRequest, 'start'>, call?: Call, signal?: AbortSignal) =>
      oneTask.take(context, request, call, signal),
    /** A task, and the key that made each of its claims. */
    claimedTask: (id: string) => readClaimedTask(context, id),
    /** Ends an attempt for a caller whose key is limited to some queues, or who has read the task already. */
    settle: <Outcome extends OneOutcome>(
      outcome: Outcome,
      id: string,
      epoch: number | null,
      report?: oneTask.Said<Outcome>,
      by?: oneTask.SettledBy,
    ) => oneTask.settleOne(context, outcome, id, epoch, report, by),
    /** The database's clock in milliseconds. All times are measured by it. */
    clock: () => clockMs(sql),
  }
}

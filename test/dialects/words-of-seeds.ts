/** The tables of words in the contract, written a second time by hand. */
import type { JobState } from '../../src/kernel/job.ts'
import type { StageState } from '../../src/kernel/stage.ts'
import type { TaskState } from '../../src/kernel/task.ts'
import type { DialectName } from '../../src/protocol/dialects.ts'

export type Entity = 'job' | 'stage' | 'task'

/** The fields of Pawl's views that a word depends on. */
export interface Seen {
  readonly id: string
  readonly seq: number
  readonly state: string
  readonly endsAs?: string | null
  readonly gate?: object | null
  readonly calledOffFrom?: string | null
  readonly progress?: Record<'total' | 'good' | 'bad' | 'partial' | 'skipped', number>
  readonly startedAt?: string | null
  readonly runAt?: string
}

type Saying = string | null | ((seen: Seen, now: number) => string)
/** null: the system has no such entity. */
type Table<State extends string> = Readonly<Record<State, Saying>> | null

const beforeItsTurn = ({ gate }: Seen) => (gate ? 'WAITING' : 'CREATED')
const calledOff = (seen: Seen) => {
  const from: Record<string, string> = {
    created: beforeItsTurn(seen),
    waiting: 'WAITING',
    pending: 'PENDING',
    running: 'IN_PROGRESS',
  }
  return seen.calledOffFrom ? from[seen.calledOffFrom]! : 'ABORTED'
}

/** The workers skipped every task of the stage. An event does not show that. */
const wasSkipped = ({ progress }: Seen) =>
  progress !== undefined && progress.total > 0 && progress.skipped === progress.total

const tables: Record<DialectName, { job: Table<JobState>; stage: Table<StageState>; task: Table<TaskState> }> = {
  marie: {
    task: {
      blocked: 'CREATED',
      queued: 'CREATED',
      retrying: 'RETRY',
      assigned: 'ACTIVE',
      running: 'ACTIVE',
      succeeded: 'COMPLETED',
      skipped: 'SKIPPED',
      failed: 'FAILED',
      cancelled: 'CANCELLED',
      expired: 'EXPIRED',
      dead_lettered: 'FAILED',
    },
    stage: null,
    job: {
      created: 'CREATED',
      pending: 'CREATED',
      running: 'ACTIVE',
      compensating: 'ACTIVE',
      paused: 'ACTIVE',
      stopping: 'ACTIVE',
      succeeded: 'COMPLETED',
      partial: 'FAILED',
      failed: 'FAILED',
      cancelled: 'CANCELLED',
      expired: 'EXPIRED',
    },
  },
  jobnik: {
    task: {
      blocked: 'PENDING',
      queued: 'PENDING',
      retrying: 'RETRIED',
      assigned: 'IN_PROGRESS',
      running: 'IN_PROGRESS',
      succeeded: 'COMPLETED',
      skipped: 'COMPLETED',
      failed: 'FAILED',
      cancelled: 'FAILED',
      expired: 'FAILED',
      dead_lettered: 'FAILED',
    },
    stage: {
      created: beforeItsTurn,
      waiting: 'WAITING',
      pending: 'PENDING',
      running: 'IN_PROGRESS',
      stopping: seen => (seen.endsAs === 'failed' ? 'FAILED' : calledOff(seen)),
      succeeded: 'COMPLETED',
      partial: 'COMPLETED',
      failed: 'FAILED',
      skipped: 'COMPLETED',
      cancelled: calledOff,
    },
    job: {
      created: 'PENDING',
      pending: 'PENDING',
      running: 'IN_PROGRESS',
      compensating: 'IN_PROGRESS',
      paused: 'PAUSED',
      stopping: ({ endsAs }) => (endsAs === 'cancelled' ? 'ABORTED' : 'FAILED'),
      succeeded: 'COMPLETED',
      partial: 'COMPLETED',
      failed: 'FAILED',
      cancelled: 'ABORTED',
      expired: 'FAILED',
    },
  },
  falconeri: {
    task: {
      blocked: null,
      queued: 'ready',
      retrying: ({ runAt }, now) => (Date.parse(runAt!) <= now ? 'ready' : 'error'),
      assigned: 'running',
      running: 'running',
      succeeded: 'done',
      skipped: 'done',
      failed: 'error',
      cancelled: 'canceled',
      expired: 'error',
      dead_lettered: 'error',
    },
    stage: null,
    job: {
      created: 'running',
      pending: 'running',
      running: 'running',
      compensating: 'running',
      paused: 'running',
      stopping: 'running',
      succeeded: 'done',
      partial: 'error',
      failed: 'error',
      cancelled: 'canceled',
      expired: 'error',
    },
  },
  pipeline: {
    task: null,
    stage: {
      created: null,
      waiting: null,
      pending: null,
      running: 'running',
      stopping: 'running',
      succeeded: seen => (wasSkipped(seen) ? 'skipped' : 'completed'),
      partial: 'partial',
      failed: 'failed',
      skipped: 'skipped',
      cancelled: seen => {
        const { progress, startedAt } = seen
        if (progress === undefined || wasSkipped(seen)) return 'skipped'
        if (startedAt === null && progress.good === 0) return 'skipped'
        if (progress.bad > 0) return 'failed'
        return progress.partial > 0 ? 'partial' : 'completed'
      },
    },
    job: {
      created: 'pending',
      pending: 'pending',
      running: 'running',
      compensating: 'running',
      paused: 'running',
      stopping: 'running',
      succeeded: 'completed',
      partial: 'partial',
      failed: 'failed',
      cancelled: 'cancelled',
      expired: 'failed',
    },
  },
  jsm: {
    task: {
      blocked: 'queued',
      queued: 'queued',
      retrying: 'queued',
      assigned: 'assigned',
      running: 'running',
      succeeded: 'succeeded',
      skipped: 'succeeded',
      failed: 'failed',
      cancelled: 'cancelled',
      expired: 'failed',
      dead_lettered: 'dead_lettered',
    },
    stage: null,
    job: null,
  },
}

/** The possible words at a time between these two, by the database's clock. */
export function wordsFor(
  dialect: DialectName,
  entity: Entity,
  seen: Seen,
  between: readonly number[],
): (string | null)[] {
  const table = tables[dialect][entity] as Table<string>
  if (table === null) return [null]
  const saying = table[seen.state]
  if (saying === undefined) throw new Error(`the tables do not know a ${entity} that is ${seen.state}`)
  return typeof saying === 'function' ? between.map(now => saying(seen, now)) : [saying]
}

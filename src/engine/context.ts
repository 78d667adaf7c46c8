import type { FileStore } from '../files/file-store.ts'
import type { PodRules } from '../kernel/pod-rules.ts'
import type { CallerTransaction } from '../kernel/transactions.ts'
import type { Pipelines } from '../spec/parse-job-spec.ts'
import type { Sql } from '../store/driver/sql.ts'
import type { SmallJob } from '../store/jobs/insert-jobs.ts'
import { tracesOf } from '../store/tasks/read-tasks.ts'
import type { WatchKey } from './admin/keys.ts'
import type { Activities, ProcessMetrics } from './admin/process-metrics.ts'
import type { EndWatch } from './ends.ts'
import type { Feed } from './feed/follow.ts'
import type { ConditionTurns } from './jobs/evaluate-conditions.ts'
import type { ClaimHints } from './tasks/claim-hints.ts'
import type { RegisteredTypes } from './tasks/task-types.ts'
import type { Wake, WakeSignal } from './wake.ts'

/** A logger receives an event name and its facts. */
export type Log = (event: string, facts: Record<string, unknown>) => void

/** Shared by all use cases. */
export interface Context {
  readonly sql: Sql
  /** A separate connection for statements that must not wait until a transaction returns one to the pool. */
  readonly separate: Sql
  readonly wake: Wake
  readonly claimHints: ClaimHints
  /** One poll of the feed for all streams that wait for new events. */
  readonly feed: Feed
  /** One poll for all requests that wait for the end of a task or a job. */
  readonly ends: EndWatch
  readonly types: RegisteredTypes
  readonly log: Log
  readonly metrics: ProcessMetrics
  readonly activities: Activities
  /** Resolves if the store accepts writes. Otherwise throws the problem within a second. */
  ready(): Promise<void>
  readonly maxPayloadBytes: number
  /** Reports when a key is revoked. */
  readonly watchKey: WatchKey
  /** How long a request waits for a job that another transaction holds. */
  readonly lockSeconds: number
  readonly files: FileStore
  /** Local folders, as URIs, that jobs may name; undefined: any. */
  readonly fileRoots: readonly string[] | undefined
  /** Buckets that jobs may name; undefined: any. */
  readonly s3Buckets: readonly string[] | undefined
  /** Limits on the pods of stages; undefined: this process starts no pods. */
  readonly podRules: PodRules | undefined
  /** Job specs that can be submitted by name. */
  readonly pipelines: Pipelines
  /** Wakes the babysitter when there are inputs to list or files to promote. */
  readonly fileSignal: WakeSignal
  /** Jobs waiting for a turn to evaluate costly conditions. */
  readonly conditionTurns: ConditionTurns
  /** Inserts a small job together with others that are submitted at the same time. Returns the time of its creation. */
  readonly insertSmallJob: (job: SmallJob) => Promise<Date>
  /** True on the embedded store, where a call outside an open transaction would wait for that transaction forever. */
  readonly oneConnection: boolean
  /** Kinds of tasks whose lanes this process has created or seen. No lane is removed while the process runs. */
  readonly knownLanes: Set<string>
  /** Notifies waiting workers once the transaction commits. */
  notifyOnCommit(sql: Sql, queues: readonly string[]): Promise<void>
  /** Runs `work` in a transaction of another library, in a savepoint. */
  inForeignTransaction<T>(tx: object, work: (sql: Sql) => Promise<T>): Promise<T>
  /** Returns the transaction that a call joins, or our own connections if it joins none. */
  sqlFor(tx: CallerTransaction | undefined): Sql
}

/** Logs an event of a task or job, with its correlation id and traceparent. Never throws. */
export async function logCorrelated(
  { sql, log }: Pick<Context, 'sql' | 'log'>,
  event: string,
  of: { readonly entity: 'task' | 'job'; readonly id: string },
  facts: Record<string, unknown>,
): Promise<void> {
  const [trace] = await tracesOf(sql, of.entity, [of.id]).catch(() => [])
  const { correlationId, traceparent } = trace ?? {}
  log(event, { ...facts, ...(correlationId && { correlationId }), ...(traceparent && { traceparent }) })
}

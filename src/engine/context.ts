import type { FileStore } from '../files/file-store.ts'
import type { PodRules } from '../kernel/pod-rules.ts'
import type { Pipelines } from '../spec/named-job.ts'
import type { Sql } from '../store/driver/sql.ts'
import type { Activities } from './activities.ts'
import type { ProcessMetrics } from './admin/process-metrics.ts'
import type { WatchKey } from './admin/watch-keys.ts'
import type { Feed } from './feed/feed-watch.ts'
import type { ConditionTurns } from './jobs/condition-budget.ts'
import type { ClaimHints } from './tasks/claim-hints.ts'
import type { RegisteredTypes } from './tasks/task-types.ts'
import type { Wake, WakeSignal } from './wake.ts'

/** A logger receives an event name and its facts. */
export type Log = (event: string, facts: Record<string, unknown>) => void

/** Shared by all use cases. */
export interface Context {
  readonly sql: Sql
  /** A separate connection for statements that must not wait until a transaction returns one to the pool. */
  readonly aside: Sql
  readonly wake: Wake
  readonly claimHints: ClaimHints
  /** One poll of the feed for all streams that wait for new events. */
  readonly feed: Feed
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
  /** True on the embedded store, where a call outside an open transaction would wait for that transaction forever. */
  readonly oneConnection: boolean
  /** Kinds of tasks whose lanes this process has created or seen. No lane is removed while the process runs. */
  readonly knownLanes: Set<string>
  /** Notifies waiting workers once the transaction commits. */
  notifyOnCommit(sql: Sql, queues: readonly string[]): Promise<void>
  /** Returns the caller's transaction as ours, or our own connections if no transaction was passed. */
  sqlFor(tx: CallerTransaction | undefined): Sql
}

/**
 * Anything with `query(text, values)`, such as a client of `pg` or a transaction of PGlite, or a transaction from
 * `transaction()`.
 */
export type CallerTransaction = Sql | { query(text: string, values: unknown[]): Promise<{ rows: unknown[] }> }

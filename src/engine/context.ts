import type { FileStore } from '../files/file-store.ts'
import type { PodRules } from '../kernel/pod-rules.ts'
import type { Pipelines } from '../spec/named-job.ts'
import type { Sql } from '../store/driver/sql.ts'
import type { Activities } from './activities.ts'
import type { Figures } from './admin/figures.ts'
import type { WatchKey } from './admin/watch-keys.ts'
import type { Feed } from './feed/feed-watch.ts'
import type { Turns } from './jobs/condition-budget.ts'
import type { ClaimHints } from './tasks/claim-hints.ts'
import type { RegisteredTypes } from './tasks/task-types.ts'
import type { Wake } from './wake.ts'
import type { Bell } from './wake-signal.ts'

/** A logger gets a word and its facts; what it does with them is its own. */
export type Log = (word: string, facts: Record<string, unknown>) => void

/** What the use cases share. */
export interface Context {
  readonly sql: Sql
  /** A connection of its own, for what must not wait until a transaction gives one back. */
  readonly aside: Sql
  readonly wake: Wake
  readonly hints: ClaimHints
  /** One look at the feed for all who wait for new events. */
  readonly feed: Feed
  readonly types: RegisteredTypes
  readonly log: Log
  readonly figures: Figures
  readonly activities: Activities
  /** Resolves if the store accepts writes; else throws the problem, within a second. */
  ready(): Promise<void>
  readonly maxPayloadBytes: number
  /** Tells when a key is revoked. */
  readonly watchKey: WatchKey
  /** How long a request waits for a job that another transaction holds. */
  readonly lockSeconds: number
  readonly files: FileStore
  /** Folders of this machine, as URIs, that jobs may name; undefined: any. */
  readonly fileRoots: readonly string[] | undefined
  /** Buckets that jobs may name; undefined: any. */
  readonly s3Buckets: readonly string[] | undefined
  /** Limits on the pods of stages; undefined: this process starts none. */
  readonly podRules: PodRules | undefined
  /** Specs that jobs may be submitted by the names of. */
  readonly pipelines: Pipelines
  /** Rung when there are inputs to be found or files to be put in their places; the babysitter hears it. */
  readonly fileBell: Bell
  /** Jobs that wait for their turn to evaluate costly conditions. */
  readonly conditionTurns: Turns
  /** The embedded store: a call outside an open transaction would wait for it for ever. */
  readonly oneConnection: boolean
  /** Kinds of tasks whose lanes this process has made or seen; none is removed while it lives. */
  readonly knownLanes: Set<string>
  /** Tells waiting workers once the transaction has committed. */
  tellOnCommit(sql: Sql, queues: readonly string[]): Promise<void>
  /** Turns a caller's transaction into ours; undefined: no transaction was passed. */
  within(tx: CallerTransaction | undefined): Sql
}

/** Anything with `query(text, values)`: a client of `pg`, a transaction of PGlite; or our own from `transaction()`. */
export type CallerTransaction = Sql | { query(text: string, values: unknown[]): Promise<{ rows: unknown[] }> }

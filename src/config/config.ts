import type { DialectName } from '../protocol/dialects.ts'
import type { LogLevel } from '../protocol/tasks/logs.ts'
import type { TaskTypeOptions } from '../protocol/tasks/tasks.ts'
import type { JobSpec } from '../spec/job-spec.ts'

/** What `pawl.config.ts` (or .js, .mjs, .json) may say. The environment goes before it, and a flag before both. */
export interface PawlConfig {
  /** Where `pawl up` listens. Default 127.0.0.1. */
  readonly host?: string
  /** 0: any that is free. Default 7295. */
  readonly port?: number
  /** Ask for a key on this machine's own address too, as behind a proxy. Default false. */
  readonly keysOnly?: boolean
  /** The largest JSON body of a request. Default 33554432: 32 MiB. */
  readonly maxBodyBytes?: number
  /** The largest YAML body of a request, at most the default: 2097152, 2 MiB. */
  readonly maxYamlBytes?: number
  /** The largest payload or output of a task. Default 1048576: 1 MiB. */
  readonly maxPayloadBytes?: number
  /** How long a request may take to arrive, headers and body. Default 30. */
  readonly requestSeconds?: number
  /** How long a connection may stay idle between two requests. Default 75: longer than most load balancers keep theirs. */
  readonly keepAliveSeconds?: number
  /**
   * Folders of this machine whose files jobs may use, symbolic links included; ["none"]: none. Default: any, and none
   * where keys are wanted.
   */
  readonly fileRoots?: readonly string[]
  /** Buckets that jobs may use; ["*"]: all, ["none"]: none. Default: all, and none where file roots are set or keys are wanted. */
  readonly s3Buckets?: readonly string[]
  /** The other systems whose APIs are served, under `/dialects/<name>`; ["all"]: all of them. Default: none. */
  readonly dialects?: readonly (DialectName | 'all' | 'none')[]
  /** Serve the one dialect that is named at `/`, and Pawl's own routes under `/pawl`. Default false. */
  readonly dialectAtRoot?: boolean
  /**
   * How long a task stays with a Jobnik worker that says nothing, before another worker gets it. A job may have its own
   * `leaseSeconds`. Default 86400: 24 hours.
   */
  readonly jobnikLeaseSeconds?: number
  /** A server whose event loop is blocked for this long logs and counts it; 0: it is not watched. Default 1. */
  readonly blockedSeconds?: number
  /** How long a datum is left to a worker of Falconeri, which sends no heartbeats. Default 86400, a day. */
  readonly falconeriLeaseSeconds?: number
  /** How many streams of events may be open at once. Default 500. */
  readonly maxStreams?: number
  /** How many of them clients with one key may have open. Default 100. */
  readonly maxStreamsPerKey?: number
  /** Where the embedded store keeps its data; seen from the file that says it. Default ./pawl-data. */
  readonly data?: string
  /** A PostgreSQL server in place of the embedded store. */
  readonly database?: string
  /** The schema that holds the tables. Default pawl. */
  readonly schema?: string
  /** Connections to the PostgreSQL server. Default 4. */
  readonly connections?: number
  /** Whether the database is a pooler such as PgBouncer that hands out connections by transaction. Default: detect. */
  readonly pooler?: 'detect' | 'transaction' | 'none'
  /** Behind a pooler, the PostgreSQL server itself, to hear of new work at once. Default: polling. */
  readonly listenDatabase?: string
  /** How long a statement may take on the PostgreSQL server. Default 10. */
  readonly statementSeconds?: number
  /** How long to wait for a row that another transaction holds. Default 3. */
  readonly lockSeconds?: number
  /** How long a transaction may stay open without a statement. Default 10. */
  readonly idleSeconds?: number
  /** How long to wait for a connection (default 10), or for a turn on the embedded store (default 60). */
  readonly connectionSeconds?: number
  /** The server that commands and workers speak to. Default: the one that `pawl up` would start here. */
  readonly server?: string
  /** The key that they show it. */
  readonly key?: string
  /** What `pawl worker` works on. Default: the types of its tasks. */
  readonly queues?: readonly string[]
  /** Handlers that run at once. Default 10. */
  readonly concurrency?: number
  /** Tasks that a worker claims ahead of need. Default: as many as run at once; none if it runs commands. */
  readonly buffer?: number
  /** How long a worker that stops waits for running handlers. Default 30. */
  readonly drainSeconds?: number
  /** Start the workers of stages with a Kubernetes runner as Kubernetes Jobs. Default false. */
  readonly kubernetes?: boolean
  /** Where stages run in Kubernetes unless they say otherwise. Default: the namespace of the server, or the kubeconfig's. */
  readonly k8sNamespace?: string
  /** Where workers in Kubernetes find the server. Default: the Service of deploy/. */
  readonly k8sUrl?: string
  /** The image of Pawl that they are made from; "none": every stage's image has its own pawl. */
  readonly k8sImage?: string
  /** The Secret whose `key` they show to the server; "none": it asks for none. */
  readonly k8sKeySecret?: string
  /**
   * Images that stages may run in: each exact, or with a final `*` after `/`, `:` or `@`; `*` allows all. Default: only
   * `k8sImage`, which is always allowed.
   */
  readonly k8sImages?: readonly string[]
  /** Namespaces that stages may name. Default: only `k8sNamespace`, which is always allowed. */
  readonly k8sNamespaces?: readonly string[]
  /** Secrets of Kubernetes that stages may use. Default: none. */
  readonly k8sSecrets?: readonly string[]
  /** Service accounts that stages may run as. Default: none. */
  readonly k8sServiceAccounts?: readonly string[]
  /** How `pawl up` and `pawl worker` log, on the standard error. Default: pretty on a terminal, else json. */
  readonly log?: 'pretty' | 'json'
  /** The least that they log. Default warn. */
  readonly logLevel?: LogLevel
  /** How tasks are leased, retried and kept, by their type: `pawl up` writes it to the store when it starts. */
  readonly taskTypes?: Readonly<Record<string, TaskTypeOptions>>
  /**
   * Specs that jobs may be submitted by the names of: each as it is, or the file that it is in, seen from the file that
   * says it.
   */
  readonly pipelines?: Readonly<Record<string, JobSpec | string>>
}

/** Has no effect but that an editor knows what may be said. */
export function defineConfig(config: PawlConfig): PawlConfig {
  return config
}

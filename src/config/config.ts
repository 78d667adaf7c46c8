import type { DialectName } from '../protocol/dialects.ts'
import type { LogLevel } from '../protocol/tasks/logs.ts'
import type { TaskTypeOptions } from '../protocol/tasks/tasks.ts'
import type { JobSpec } from '../spec/job-spec.ts'

/** The contents of `pawl.config.ts` (or .js, .mjs, .json). Environment variables override it, and flags override both. */
export interface PawlConfig {
  /** The address that `pawl up` listens on. Default 127.0.0.1. */
  readonly host?: string
  /** The port that `pawl up` listens on; 0: any free port. Default 7295. */
  readonly port?: number
  /** Require an API key on a loopback address too, for example behind a proxy. Default false. */
  readonly keysOnly?: boolean
  /** Maximum size of a JSON request body. Default 33554432 (32 MiB). */
  readonly maxBodyBytes?: number
  /** Maximum size of a YAML request body. Default 2097152 (2 MiB), which is also the maximum. */
  readonly maxYamlBytes?: number
  /** Maximum size of the payload or output of a task. Default 1048576 (1 MiB). */
  readonly maxPayloadBytes?: number
  /** How long a request may take to arrive, including its body. Default 30. */
  readonly requestSeconds?: number
  /**
   * How long a connection may stay idle between two requests. Default 75, longer than the idle timeout of most load
   * balancers.
   */
  readonly keepAliveSeconds?: number
  /**
   * Folders on this machine whose files jobs may use, after resolving symbolic links; ["none"]: none. Default: all
   * folders, or none if API keys are required.
   */
  readonly fileRoots?: readonly string[]
  /**
   * Buckets that jobs may use; ["*"]: all, ["none"]: none. Default: all, or none if file roots are set or API keys are
   * required.
   */
  readonly s3Buckets?: readonly string[]
  /** Other systems whose APIs are served under `/dialects/<name>`; ["all"]: all of them. Default: none. */
  readonly dialects?: readonly (DialectName | 'all' | 'none')[]
  /** Serve the only dialect at `/`, and Pawl's own API under `/pawl`. Default false. */
  readonly dialectAtRoot?: boolean
  /**
   * How long a Jobnik worker may keep a task before another worker gets it. A job may set its own `leaseSeconds`.
   * Default 86400 (24 hours).
   */
  readonly jobnikLeaseSeconds?: number
  /** Log and count an event loop that is blocked for this long; 0: never. Default 1. */
  readonly blockedSeconds?: number
  /** How long a Falconeri worker, which sends no heartbeats, may keep a datum. Default 86400 (24 hours). */
  readonly falconeriLeaseSeconds?: number
  /** Maximum number of open event streams. Default 500. */
  readonly maxStreams?: number
  /** Maximum number of open event streams per API key. Default 100. */
  readonly maxStreamsPerKey?: number
  /** The folder of the embedded store, relative to the config file. Default ./pawl-data. */
  readonly data?: string
  /** The URL of a PostgreSQL database, instead of the embedded store. */
  readonly database?: string
  /** The database schema that contains the tables. Default pawl. */
  readonly schema?: string
  /** Maximum number of connections to PostgreSQL. Default 4. */
  readonly connections?: number
  /** Whether the database is a pooler such as PgBouncer in transaction mode. Default: detect. */
  readonly pooler?: 'detect' | 'transaction' | 'none'
  /** Behind a pooler: the URL of the PostgreSQL server itself, used for notifications of new work. Default: polling. */
  readonly listenDatabase?: string
  /** How long a statement may take on PostgreSQL. Default 10. */
  readonly statementSeconds?: number
  /** How long to wait for a row that another transaction has locked. Default 3. */
  readonly lockSeconds?: number
  /** How long a transaction may stay idle. Default 10. */
  readonly idleSeconds?: number
  /** How long to wait for a connection (default 10), or for a turn on the embedded store (default 60). */
  readonly connectionSeconds?: number
  /** The URL of the server for commands and workers. Default: the one that `pawl up` would start with these settings. */
  readonly server?: string
  /** The API key of commands and workers. */
  readonly key?: string
  /**
   * The modules with the tasks of this project, or folders with such modules, for `pawl dev` and `pawl worker`. Default: the
   * first of tasks/, src/tasks/, tasks.ts, src/tasks.ts and handlers.ts that exists.
   */
  readonly tasks?: readonly string[]
  /** Queues that `pawl worker` claims from. Default: the types of its tasks. */
  readonly queues?: readonly string[]
  /** Maximum number of handlers that run at the same time. Default 10. */
  readonly concurrency?: number
  /** Tasks to claim in advance. Default: the value of `concurrency`, or 0 for a worker with commands. */
  readonly buffer?: number
  /** How long a worker waits for running handlers when stopping. Default 30. */
  readonly drainSeconds?: number
  /** Start the workers of stages with a Kubernetes runner as Kubernetes Jobs. Default false. */
  readonly kubernetes?: boolean
  /** The namespace of stages that name none. Default: the namespace of the server or of the kubeconfig. */
  readonly k8sNamespace?: string
  /** The URL of the server for workers in Kubernetes. Default: the Service in deploy/. */
  readonly k8sUrl?: string
  /** The image that contains Pawl; "none": the image of every stage contains it. */
  readonly k8sImage?: string
  /** The Secret whose `key` is the API key of workers; "none": the server requires no key. */
  readonly k8sKeySecret?: string
  /**
   * Images that stages may use: exact names, or patterns that end in `/*`, `:*` or `@*`; `*` allows all. `k8sImage` is
   * always allowed. Default: no others.
   */
  readonly k8sImages?: readonly string[]
  /** Namespaces that stages may use. `k8sNamespace` is always allowed. Default: no others. */
  readonly k8sNamespaces?: readonly string[]
  /** Kubernetes Secrets that stages may use. Default: none. */
  readonly k8sSecrets?: readonly string[]
  /** Service accounts that stages may run as. Default: none. */
  readonly k8sServiceAccounts?: readonly string[]
  /** The log format of `pawl up` and `pawl worker`. Default: pretty on a terminal, otherwise json. */
  readonly log?: 'pretty' | 'json'
  /** The lowest level to log. Default warn. */
  readonly logLevel?: LogLevel
  /** How tasks of each type are leased, retried and kept. `pawl up` writes this to the store when it starts. */
  readonly taskTypes?: Readonly<Record<string, TaskTypeOptions>>
  /**
   * Job specs that can be submitted by name: each is a spec, or the path of a file with one, relative to the config
   * file.
   */
  readonly pipelines?: Readonly<Record<string, JobSpec | string>>
}

/** Returns the config unchanged. Its type lets editors check and complete settings. */
export function defineConfig(config: PawlConfig): PawlConfig {
  return config
}

import { commandType } from '../kernel/datum.ts'
import { describeError } from '../kernel/error-cause.ts'
import {
  callback,
  checkOptions,
  type Field,
  type Fields,
  field,
  firstFault,
  number,
  type OptionsOf,
  text,
} from '../schema/check.ts'
import type { Task } from './define-task.ts'
import { printFailures } from './failure-log.ts'

const fields = {
  /**
   * Shown to people. Default: NODE_NAME/POD_NAME in Kubernetes if both are set, else host, process id and random
   * digits.
   */
  name: text(200),
  /** Default: the types of its tasks. */
  queues: field<readonly string[]>({}, value =>
    Array.isArray(value) && value.length > 0 ? firstFault(text(200), value) : 'be a list of names',
  ),
  /** Handlers that run at once. Default 10. */
  concurrency: number({ from: 1, to: 10_000, whole: true }),
  /**
   * Tasks claimed in advance, so that no handler waits for the store. Default: the same as `concurrency`, or 0 for a
   * worker that runs commands. Commands are long, and a buffered one would be kept from an idle worker.
   */
  buffer: number({ from: 0, to: 100_000, whole: true }),
  /** How long a claim waits at the engine for work. Default 20. */
  waitSeconds: number({ from: 0, to: 60 }),
  /** How long a stop waits for running handlers. Default 30. */
  drainSeconds: number({ from: 0, to: 86_400 }),
  /**
   * Receives what happens to the worker, as events with facts. Default: prints one line to standard error for each failed
   * attempt (`task.failed`). `PAWL_LOG_LEVEL=debug` adds the stacks; `() => {}` prints nothing. The worker goes on if it
   * throws.
   */
  log: callback as Field<(event: string, facts: Record<string, unknown>) => void>,
} satisfies Fields

/** Options of `startWorker`. */
export interface WorkerOptions extends OptionsOf<typeof fields> {}

export type WorkerSettings = Required<WorkerOptions>

/** Maximum number of tasks that one sync claims or reports. */
export const batchSize = 1000

/** Reports with more log lines than this are split into several syncs. */
export const logBytesPerSync = 1_000_000

export const timings = {
  /** How often leases, starts and deadlines are checked. */
  tickMs: 50,
  /** Run time after which the start of a task is reported. */
  reportStartMs: 200,
  /** Maximum delay of a log line. Until then it waits for the next heartbeat. */
  sendLogsMs: 1000,
  /** How long handlers may take to stop after the deadline of a stop. */
  handlerStopMs: 2000,
  /** How long the last reports may take after that. */
  lastReportMs: 5000,
}

export function workerSettings(tasks: readonly Task[], options: WorkerOptions, name: string): WorkerSettings {
  checkOptions(options, fields, 'worker')
  const concurrency = options.concurrency ?? 10
  return {
    name: options.name ?? name,
    queues: options.queues ?? tasks.map(task => task.type),
    concurrency,
    buffer: options.buffer ?? (tasks.some(({ type }) => type === commandType) ? 0 : concurrency),
    waitSeconds: options.waitSeconds ?? 20,
    drainSeconds: options.drainSeconds ?? 30,
    log: harmless(options.log ?? printFailures),
  }
}

/** A log that never throws. The first failure of the log is a warning of the process. */
function harmless(log: WorkerSettings['log']): WorkerSettings['log'] {
  let hasWarned = false
  const warn = (error: unknown) => {
    if (hasWarned) return
    hasWarned = true
    process.emitWarning(`The log of a Pawl worker failed: ${describeError(error).message}`)
  }
  return (event, facts) => {
    try {
      const logging: unknown = log(event, facts)
      if (logging instanceof Promise) logging.catch(warn)
    } catch (error) {
      warn(error)
    }
  }
}

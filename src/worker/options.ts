import { commandType } from '../kernel/datum.ts'
import { callback, checkOptions, type Fields, field, firstFault, number, text } from '../schema/check.ts'
import type { Task } from './define-task.ts'

export interface WorkerOptions {
  /** For people. Default: in Kubernetes NODE_NAME/POD_NAME, where both are set; else host, process and chance. */
  readonly name?: string
  /** Default: the types of its tasks. */
  readonly queues?: readonly string[]
  /** Handlers that run at once. Default 10. */
  readonly concurrency?: number
  /**
   * Tasks claimed ahead of need, so that no handler waits for the store. Default: as many as run at once. A worker that
   * runs commands has a default of 0: commands are long, and one that waits here keeps an idle worker from it.
   */
  readonly buffer?: number
  /** How long a claim waits for work at the engine. Default 20. */
  readonly waitSeconds?: number
  /** How long a stop waits for running handlers. Default 30. */
  readonly drainSeconds?: number
  readonly log?: (word: string, facts: Record<string, unknown>) => void
}

const fields: Fields = {
  name: text(200),
  queues: field({}, value =>
    Array.isArray(value) && value.length > 0 ? firstFault(text(200), value) : 'be a list of names',
  ),
  concurrency: number({ from: 1, to: 10_000, whole: true }),
  buffer: number({ from: 0, to: 100_000, whole: true }),
  waitSeconds: number({ from: 0, to: 60 }),
  drainSeconds: number({ from: 0, to: 86_400 }),
  log: callback,
}

export type WorkerSettings = Required<WorkerOptions>

/** Most that one sync asks for or reports. */
export const batchSize = 1000

/** Reports whose log lines come to more than this go in several syncs. */
export const logBytesPerSync = 1_000_000

export const timings = {
  /** How often leases, starts and deadlines are looked at. */
  tickMs: 50,
  /** A task that has run for so long has its start reported. */
  tellStartMs: 200,
  /** A line that has waited for so long is sent; before, it goes with the next beat. */
  tellLogsMs: 1000,
  /** How long the last reports may take after the deadline of a stop. */
  lastWordMs: 5000,
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
    log: options.log ?? (() => {}),
  }
}

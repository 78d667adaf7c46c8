/** What operators look at. */
export interface Finding {
  /** `bad`: a promise is broken or about to be. `warning`: it works, but will hurt. `note`: good to know. */
  readonly grade: 'bad' | 'warning' | 'note'
  readonly what: string
  readonly todo: string
}

export interface Examination {
  readonly store: string
  readonly findings: Finding[]
  readonly healthy: boolean
}

export interface QueueView {
  readonly queue: string
  /** May be claimed now. */
  readonly due: number
  /** Wait for their time. */
  readonly scheduled: number
  /** Wait for their job or stage to go on. */
  readonly paused: number
  readonly held: number
  /** How long the oldest that is due has been waiting. */
  readonly oldestSeconds: number | null
}

/** The tasks that were taken from a worker that was declared lost. */
export interface LostWorkerView {
  readonly worker: string
  /** The tasks whose leases have ended. */
  readonly tasks: readonly string[]
}

export interface WorkerView {
  /** Null, like its times: one that claims without a session, and is known by what it holds. */
  readonly session: string | null
  readonly worker: string
  readonly queues: readonly string[]
  readonly startedAt: string | null
  readonly seenAt: string | null
  /** How many tasks it does at once; null: it does not say. */
  readonly slots: number | null
  /** Tasks that are held under its name; some of them may be claimed ahead of need. */
  readonly leases: number
  readonly leasesByQueue: Readonly<Record<string, number>>
}

/** The changes that can be made to a job and to a stage while the job is locked. */
import type { JobRow, StageRow } from '../../store/jobs/jobs.ts'

/** A job to drive, and the stages whose tasks have moved. */
export interface JobToDrive {
  readonly jobId: string
  readonly stageIds: readonly string[]
}

export type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export type StagePatch = Partial<Mutable<StageRow>> & {
  fan?: unknown
  error?: unknown
  gateUntil?: string | null
  metadata?: unknown
}
export type JobPatch = Partial<Mutable<Omit<JobRow, 'metadata'>>> & {
  deadlineAt?: string | null
  metadata?: unknown
  progressAt?: Date
}

/** The changes that can be made to a job and to a stage while the job is locked. */
import type { JobRow, StageRow } from '../store/jobs.ts'

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

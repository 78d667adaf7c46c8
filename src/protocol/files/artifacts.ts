/** Files that tasks put out: how they are reported, and how they are read. */
import type { ArtifactState } from '../../kernel/artifact.ts'
import type { DatumInput } from '../../kernel/datum.ts'
import type { HeldTask } from '../tasks/sync.ts'

/** What a worker says of a file. It is registered first, then uploaded; one that could not be made is an error. */
export interface SaidArtifact {
  /** The path in the attempt's outputs. */
  readonly name: string
  /** Where it belongs. */
  readonly uri: string
  readonly state: 'registered' | 'uploaded' | 'error'
  /** Where it lies until the attempt has won. Without one the worker puts it in its place by itself. */
  readonly stagedUri?: string
  readonly size?: number
  readonly sha256?: string
  readonly error?: string
}

export interface SaidArtifacts {
  readonly artifacts: readonly SaidArtifact[]
  /**
   * These are registered as all that the attempt puts out: once it has registered some so, it is refused to say others.
   * Said again, they are as they were.
   */
  readonly whole?: true
}

export interface ArtifactReport extends HeldTask, SaidArtifact {}

export interface RegisteredFile {
  /** From the task's outputs, parts joined by `/`. */
  readonly name: string
  /** Where it will lie if the attempt wins. */
  readonly uri: string
  /** Where this attempt puts it. */
  readonly stagedUri: string
}

export interface UploadedFile {
  readonly name: string
  readonly uri: string
  readonly size: number
  /** In hex. */
  readonly sha256: string
}

/** Both are fenced as all that a worker says, and may be sent again. */
export interface ArtifactPort {
  /** Before the first byte is sent. A URI that another task's file has is a Problem, ARTIFACT_CONFLICT. */
  register(files: readonly RegisteredFile[]): Promise<void>
  uploaded(files: readonly UploadedFile[]): Promise<void>
  /** What a stage has put in its place, all or in a folder (which ends in `/`), page by page. */
  ofStage(stageId: string, prefix: string): AsyncIterable<readonly StageFile[]>
}

export interface StageFilesQuery {
  /** Only those in this folder; it ends in `/`. */
  readonly prefix?: string
  readonly limit?: number
  readonly cursor?: string
}

/** A file that a stage has put in its place. */
export interface StageFile {
  readonly name: string
  readonly uri: string
  readonly size: number | null
  readonly sha256: string | null
}

export interface ArtifactView {
  readonly id: string
  readonly jobId: string | null
  readonly stageId: string | null
  readonly taskId: string
  /** The attempt that made it. */
  readonly epoch: number
  readonly name: string
  readonly uri: string
  readonly state: ArtifactState
  /** It lies at its URI: it is stored, or its worker has put it there by itself. */
  readonly inPlace: boolean
  readonly size: number | null
  readonly sha256: string | null
  readonly error: string | null
  /** The artifact of an earlier job that this is the same file as. */
  readonly linkedFrom: string | null
  readonly createdAt: string
  readonly changedAt: string
  readonly endedAt: string | null
}

export interface ArtifactQuery {
  readonly state?: ArtifactState | readonly ArtifactState[]
  readonly limit?: number
  readonly cursor?: string
}

/** What became of a file: who made it out of what, and who made what out of it. */
export interface Lineage {
  readonly uri: string
  readonly madeBy: readonly Making[]
  readonly usedBy: readonly Making[]
}

export interface Making {
  readonly taskId: string
  readonly jobId: string | null
  readonly inputs: readonly DatumInput[]
  readonly outputs: readonly ArtifactView[]
}

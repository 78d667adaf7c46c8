/** Files that tasks put out: how they are reported, and how they are read. */
import { type ArtifactState, artifactLifecycle } from '../../kernel/artifact.ts'
import type { DatumInput } from '../../kernel/datum.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { type Static, typed } from '../../schema/check.ts'
import { at, flag, id, list, orNull, ref, shape, text, whole, words } from '../shapes.ts'
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

export const stageFile = shape({
  name: text,
  uri: text,
  size: orNull(whole),
  sha256: orNull(text),
})
/** A file that a stage has put in its place. */
export type StageFile = Static<typeof stageFile>

export const artifactView = shape({
  id,
  jobId: orNull(id),
  stageId: orNull(id),
  taskId: id,
  /** The attempt that made it. */
  epoch: whole,
  name: text,
  uri: text,
  state: words(...statesOf(artifactLifecycle)),
  /** It lies at its URI: it is stored, or its worker has put it there by itself. */
  inPlace: flag,
  size: orNull(whole),
  sha256: orNull(text),
  error: orNull(text),
  /** The artifact of an earlier job that this is the same file as. */
  linkedFrom: orNull(id),
  createdAt: at,
  changedAt: at,
  endedAt: orNull(at),
})
export type ArtifactView = Static<typeof artifactView>

export interface ArtifactQuery {
  readonly state?: ArtifactState | readonly ArtifactState[]
  readonly limit?: number
  readonly cursor?: string
}

const datumInput = typed<DatumInput>({
  type: 'object',
  required: ['name', 'uri', 'path'],
  properties: { name: text, uri: text, path: text, size: whole, version: text },
})

const making = shape({
  taskId: id,
  jobId: orNull(id),
  inputs: list(datumInput),
  outputs: list(ref<ArtifactView>('Artifact')),
})
export type Making = Static<typeof making>

export const lineage = shape({
  uri: text,
  madeBy: list(making),
  usedBy: list(making),
})
/** What became of a file: who made it out of what, and who made what out of it. */
export type Lineage = Static<typeof lineage>

/** Output files of tasks: how they are reported and read. */
import { artifactLifecycle } from '../../kernel/artifact.ts'
import type { DatumInput } from '../../kernel/datum.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import {
  type Fields,
  faultOf,
  field,
  listOf,
  nested,
  number,
  type OptionsOf,
  oneOf,
  oneOrMore,
  type Static,
  text as shortText,
  typed,
} from '../../schema/check.ts'
import { reason } from '../../schema/fields.ts'
import { type PageQuery, pageFields } from '../call-options.ts'
import { at, flag, id, list, orNull, ref, shape, text, whole, words } from '../shapes.ts'
import type { HeldTask } from '../tasks/sync.ts'

/** Maximum number of files that are reported together with the success of their attempt. */
export const mostWithSuccess = 100

/** Maximum number of items of one kind in a sync. */
export const mostReports = 5000

/** The name is part of an index. */
const longestName = 2000

export const reportedArtifactFields = {
  /** The path in the attempt's outputs. */
  name: field<string>({ type: 'string', minLength: 1, maxLength: longestName }, value =>
    typeof value === 'string' && Buffer.byteLength(value) > longestName
      ? `have at most ${longestName} bytes`
      : faultOf(shortText(longestName), value),
  ),
  /** The final URI. */
  uri: shortText(8000),
  state: oneOf(['registered', 'uploaded', 'error']),
  /** The location until the attempt has won. Without one, the worker moves the file to `uri` itself. */
  stagedUri: shortText(8000),
  size: number({ from: 0, to: Number.MAX_SAFE_INTEGER, whole: true }),
  sha256: field<string>({ type: 'string', pattern: '^[0-9a-f]{64}$' }, value =>
    typeof value === 'string' && /^[0-9a-f]{64}$/.test(value) ? undefined : 'be 64 hexadecimal digits',
  ),
  error: reason,
} satisfies Fields
const reportedArtifact = nested(reportedArtifactFields, ['name', 'uri', 'state'])
/** A worker's report of a file. It is registered first, then uploaded. `error`: the file could not be produced. */
export interface ReportedArtifact extends Static<typeof reportedArtifact> {}

export const artifactsFields = {
  artifacts: listOf<ReportedArtifact>(reportedArtifact, mostReports),
  /**
   * The list is the complete set of the attempt's output files. Further reports of other files are refused. Repeating
   * the list changes nothing.
   */
  whole: oneOf([true]),
} satisfies Fields
const reportedArtifacts = nested(artifactsFields, ['artifacts'])
/** The files of one task. */
export interface ReportedArtifacts extends Static<typeof reportedArtifacts> {}

/** A report of one file of a task, in a sync. */
export interface ArtifactReport extends HeldTask, ReportedArtifact {}

/** A file before its upload. */
export interface RegisteredFile {
  /** The path in the task's outputs, with `/` between parts. */
  readonly name: string
  /** The final URI, if the attempt wins. */
  readonly uri: string
  /** The URI to which this attempt uploads it. */
  readonly stagedUri: string
}

/** A file after its upload. */
export interface UploadedFile {
  readonly name: string
  readonly uri: string
  readonly size: number
  /** In hex. */
  readonly sha256: string
}

/** Reports files of one attempt. Both reports are fenced by the lease and can be repeated. */
export interface ArtifactPort {
  /**
   * Call before the first byte is sent. Throws ARTIFACT_CONTESTED if another task is writing the
   * same URI, and ARTIFACT_CONFLICT if it has written it.
   */
  register(files: readonly RegisteredFile[]): Promise<void>
  uploaded(files: readonly UploadedFile[]): Promise<void>
  /**
   * Like `uploaded`, but the files are sent in the same request as the success of the attempt. At most 100 files. If
   * they are refused, the attempt fails.
   */
  uploadedWithSuccess?(files: readonly UploadedFile[]): void
  /** Published files of a stage, page by page. `prefix`: all (''), or a folder that ends in `/`. */
  ofStage(stageId: string, prefix: string): AsyncIterable<readonly StageFile[]>
}

const ownStageFilesFields = {
  /** Only files in this folder. It ends in `/`. */
  prefix: field<string>({ type: 'string', pattern: '/$' }, value =>
    typeof value === 'string' && value.endsWith('/') && !value.includes('\0') ? undefined : 'be a folder, ending in /',
  ),
} satisfies Fields
export const stageFilesFields = { ...pageFields, ...ownStageFilesFields }
/** Query for the published files of a stage. */
export interface StageFilesQuery extends PageQuery, OptionsOf<typeof ownStageFilesFields> {}

export const stageFile = shape({
  name: text,
  uri: text,
  size: orNull(whole),
  sha256: orNull(text),
})
/** A published file of a stage. */
export interface StageFile extends Static<typeof stageFile> {}

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
  /** The file is at its URI: it was published, or its worker wrote it there directly. */
  inPlace: flag,
  size: orNull(whole),
  sha256: orNull(text),
  error: orNull(text),
  /** The artifact of an earlier job that is the same file. */
  linkedFrom: orNull(id),
  createdAt: at,
  changedAt: at,
  endedAt: orNull(at),
})
/** An output file of a task. */
export interface ArtifactView extends Static<typeof artifactView> {}

const ownArtifactQueryFields = { state: oneOrMore(statesOf(artifactLifecycle)) } satisfies Fields
export const artifactQueryFields = { ...pageFields, ...ownArtifactQueryFields }
/** Query for output files. */
export interface ArtifactQuery extends PageQuery, OptionsOf<typeof ownArtifactQueryFields> {}

export const lineageFields = { uri: shortText(8000) } satisfies Fields

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
/** A task with its input and output files. */
export interface Making extends Static<typeof making> {}

export const lineage = shape({
  uri: text,
  madeBy: list(making),
  usedBy: list(making),
})
/** The tasks that produced and used a file, each with inputs and outputs. */
export interface Lineage extends Static<typeof lineage> {}

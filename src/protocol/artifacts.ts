/** The files that an attempt makes, as the engine hears of them: first what will be there, then what is. */

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
}

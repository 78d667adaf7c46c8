/**
 * The storage of files. A URI names a file or, ending in `/`, a folder. Every method is idempotent and safe to call
 * concurrently. Failures are Problems; an abort throws the reason of the signal.
 */
import type { Readable } from 'node:stream'

export interface Entry {
  /** Relative to the listed folder, with `/` as the separator. Folders end in `/`. */
  readonly path: string
  /** In bytes; not set for folders. */
  readonly size?: number
  /** Changes when the content changes; equal versions most likely mean equal content. Not set for folders. */
  readonly version?: string
}

export interface ListAsk {
  /** Lists only paths after this one in byte order, whether or not it still exists. */
  readonly after?: string
  /** Lists every file below the folder, and no folders. */
  readonly deep?: boolean
}

export interface Stat {
  readonly size: number
  readonly version: string
  /** If the store knows it. */
  readonly sha256?: string
}

export interface Kept {
  readonly size: number
  /** In hex. */
  readonly sha256: string
}

export interface FileStore {
  /**
   * Lists the files and folders of a folder page by page, in byte order of their paths; one level unless `deep`.
   * Unfinished work of Pawl (`.pawl/`) is hidden at any depth, unless the folder itself is part of it. The listing ends
   * with NAME_REFUSED at a name that cannot be copied. A missing folder is FILE_NOT_FOUND for `file://`, and empty
   * where folders are only prefixes.
   */
  list(folder: string, ask?: ListAsk): AsyncIterable<readonly Entry[]>

  /** Opens a file as a stream. */
  open(uri: string, signal?: AbortSignal): Promise<Readable>

  /** Uploads a local file completely or not at all. It is read once and never held in memory as a whole. */
  put(path: string, uri: string, signal?: AbortSignal): Promise<Kept>

  /**
   * Copies the file at `staged` to `uri`, completely or not at all, replacing any file there. Succeeds if this has
   * already been done, and keeps `staged`. FILE_NOT_FOUND if `staged` is missing and `uri` does not hold its content.
   */
  promote(staged: string, uri: string, kept: Kept): Promise<void>

  stat(uri: string): Promise<Stat | undefined>

  /** Removes files. A missing file counts as removed. */
  remove(uris: readonly string[]): Promise<void>

  /** Closes connections. */
  close(): Promise<void>
}

/**
 * What Pawl asks of a place where files lie. A URI names a file, or, ending in `/`, a folder. Every method may be called
 * again with the same arguments by anyone, at any time, and comes to the same. What goes wrong is a Problem; only an
 * abort is the signal's own reason.
 */
import type { Readable } from 'node:stream'

export interface Entry {
  /** From the folder that was listed, parts joined by `/`; a folder's ends in `/`. */
  readonly path: string
  /** Bytes; a folder has none. */
  readonly size?: number
  /** Differs when the bytes do; equal means most likely the same bytes. A folder has none. */
  readonly version?: string
}

export interface ListAsk {
  /** A path; what comes behind it in the order of the bytes is listed, whether or not it is still there. */
  readonly after?: string
  /** Every file below the folder, and no folders. */
  readonly deep?: boolean
}

export interface Stat {
  readonly size: number
  readonly version: string
  /** Where the store knows it. */
  readonly sha256?: string
}

export interface Kept {
  readonly size: number
  /** In hex. */
  readonly sha256: string
}

export interface FileStore {
  /**
   * What lies in a folder, in the order of the bytes of the paths, page by page as the store gives it: its files and
   * folders, one level, unless asked otherwise. Unfinished work of ours (`.pawl/`) is not shown, at any depth, unless
   * the folder itself is part of it. A name that cannot be carried is NAME_REFUSED, and the listing ends there.
   * A folder that does not exist is FILE_NOT_FOUND for `file://`; where folders are mere prefixes, it is empty.
   */
  list(folder: string, ask?: ListAsk): AsyncIterable<readonly Entry[]>

  /** The bytes of a file, as a stream. */
  open(uri: string, signal?: AbortSignal): Promise<Readable>

  /** Keeps a local file under a URI, its bytes read once and never all in memory. Whole or not at all. */
  put(path: string, uri: string, signal?: AbortSignal): Promise<Kept>

  /**
   * Puts what is kept under `staged` at `uri`, over whatever is there, whole or not at all. Done already, or by another
   * at the same time: as good. `staged` stays. Neither there nor done: FILE_NOT_FOUND.
   */
  promote(staged: string, uri: string, kept: Kept): Promise<void>

  stat(uri: string): Promise<Stat | undefined>

  /** Removes files; one that is not there is as good as removed. */
  remove(uris: readonly string[]): Promise<void>

  /** Lets go of connections. */
  close(): Promise<void>
}

/**
 * The storage of files. A URI names a file or, ending in `/`, a folder. Every method is idempotent and safe to call
 * concurrently. Failures are Problems; an abort throws the reason of the signal.
 */
import type { Readable } from 'node:stream'
import { checkOptions, field, nested, number, type OptionsOf, text } from '../schema/check.ts'

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

const mebibyte = 1 << 20

const s3Fields = {
  /** Address of the server. Default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile, or Amazon's. */
  endpoint: field<string>({}, value =>
    typeof value === 'string' && /^https?:\/\/[^/]/.test(value) ? undefined : 'be an address: http://… or https://…',
  ),
  /** Default: AWS_REGION; without an endpoint, the profile; else us-east-1. */
  region: text(100),
  /** Puts the bucket in the path instead of the host name. Default: true unless the server is Amazon's. */
  forcePathStyle: field<boolean>({}, value => (typeof value === 'boolean' ? undefined : 'be true or false')),
  /** Default: the standard chain (environment, profile, web identity, container, machine). */
  credentials: nested({ accessKeyId: text(1000), secretAccessKey: text(1000), sessionToken: text(10_000) }, [
    'accessKeyId',
    'secretAccessKey',
  ]),
  /**
   * Size of an upload part. Larger files are sent in parts, four at once. Default 16 MiB; huge files have larger parts.
   */
  partBytes: number({ from: 5 * mebibyte, to: 512 * mebibyte, whole: true }),
  /**
   * Size of a copy part. Larger files are copied in parts, four at once. Default 1 GiB, so that no request takes long.
   */
  copyBytes: number({ from: 5 * mebibyte, to: 5120 * mebibyte, whole: true }),
  /** Names per list request. Default 1000, the maximum of S3. */
  pageSize: number({ from: 1, to: 1000, whole: true }),
  /** Time without any data after which a request is given up and tried again. Default 60. */
  silenceSeconds: number({ from: 0.1, to: 3600 }),
  /** Maximum number of tries per request. Default 5. */
  tries: number({ from: 1, to: 20, whole: true }),
}

/** How an S3 server is reached. All options are optional. */
export type S3Options = OptionsOf<typeof s3Fields>

export function checkS3Options(options: S3Options): void {
  checkOptions(options, s3Fields, 's3')
}

export const s3Defaults = {
  partBytes: 16 * mebibyte,
  copyBytes: 1024 * mebibyte,
  pageSize: 1000,
  silenceSeconds: 60,
  tries: 5,
}

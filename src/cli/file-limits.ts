import { resolve } from 'node:path'
import type { Settled } from '../config/resolve.ts'

/** The files that jobs may use; undefined: any. */
export interface FileLimits {
  readonly roots: readonly string[] | undefined
  readonly buckets: readonly string[] | undefined
}

/** `usual`: the folders if no setting lists any. If folders are limited and no bucket is listed, no bucket is allowed. */
export function fileLimitsOf({ values }: Settled, usual?: readonly string[]): FileLimits {
  const { fileRoots, s3Buckets } = values
  const roots = listed(fileRoots)?.map(root => resolve(root)) ?? usual
  return { roots, buckets: listed(s3Buckets) ?? (roots === undefined ? undefined : []) }
}

const listed = (words: readonly string[] | undefined) => words?.filter(word => word !== 'none')

/** The limits as flags of `pawl worker`. */
export function limitFlags({ roots, buckets }: FileLimits): string[] {
  const flags = (name: string, words: readonly string[] | undefined) =>
    words === undefined ? [] : (words.length === 0 ? ['none'] : words).flatMap(word => [name, word])
  return [...flags('--file-roots', roots), ...flags('--s3-buckets', buckets)]
}

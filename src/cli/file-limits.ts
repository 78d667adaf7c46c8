import { resolve } from 'node:path'
import type { Settled } from '../config/resolve.ts'

/** The files that jobs may use; undefined: any. */
export interface FileLimits {
  readonly roots: readonly string[] | undefined
  readonly buckets: readonly string[] | undefined
}

/** `usual`: the folders where no setting says. Where folders are limited, so are buckets. */
export function fileLimitsOf({ values }: Settled, usual?: readonly string[]): FileLimits {
  const { fileRoots, s3Buckets } = values
  const roots = listed(fileRoots)?.map(root => resolve(root)) ?? usual
  return { roots, buckets: listed(s3Buckets) ?? (roots === undefined ? undefined : []) }
}

const listed = (words: readonly string[] | undefined) => words?.filter(word => word !== 'none')

/** The same limits for a worker, as it is told them. */
export function limitFlags({ roots, buckets }: FileLimits): string[] {
  const flags = (name: string, words: readonly string[] | undefined) =>
    words === undefined ? [] : (words.length === 0 ? ['none'] : words).flatMap(word => [name, word])
  return [...flags('--file-roots', roots), ...flags('--s3-buckets', buckets)]
}

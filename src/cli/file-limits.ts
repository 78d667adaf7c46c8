import { resolve } from 'node:path'
import type { ResolvedSettings } from '../config/resolve-settings.ts'

/** The files that jobs may use; undefined means any. */
export interface FileLimits {
  readonly roots: readonly string[] | undefined
  readonly buckets: readonly string[] | undefined
}

/** `defaultRoots` apply if no setting lists folders. If folders are limited and no bucket is listed, no bucket is allowed. */
export function fileLimitsOf({ values }: ResolvedSettings, defaultRoots?: readonly string[]): FileLimits {
  const { fileRoots, s3Buckets } = values
  const roots = withoutNone(fileRoots)?.map(root => resolve(root)) ?? defaultRoots
  return { roots, buckets: withoutNone(s3Buckets) ?? (roots === undefined ? undefined : []) }
}

const withoutNone = (words: readonly string[] | undefined) => words?.filter(word => word !== 'none')

/** The limits as flags of `pawl worker`. */
export function limitFlags({ roots, buckets }: FileLimits): string[] {
  const flags = (name: string, words: readonly string[] | undefined) =>
    words === undefined ? [] : (words.length === 0 ? ['none'] : words).flatMap(word => [name, word])
  return [...flags('--file-roots', roots), ...flags('--s3-buckets', buckets)]
}

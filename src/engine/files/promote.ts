/**
 * Moves the output files of successful attempts to their final locations, as recorded in the artifacts. Any number of
 * processes do this concurrently: a file promoted twice gets the same bytes twice. Failures are retried. If a file is
 * lost for good or its location is impossible, it is given up and its stage fails.
 */
import { isWorthRetry, Problem } from '../../kernel/problem.ts'
import {
  clearStagedUris,
  type FileToPromote,
  markArtifactLost,
  retryPromotionLater,
  storeArtifacts,
  takeFilesToPromote,
  takeUploadsToDelete,
} from '../../store/files/promotions.ts'
import type { Context } from '../context.ts'
import { advanceJobsOfStages } from '../jobs/advance-job.ts'
import { processAll } from '../process-all.ts'
import { splitOnFailure } from '../retry.ts'

/** A batch takes a few statements, whatever its size. */
const filesPerBatch = 100
/** Number of locations (a bucket, this machine) served concurrently. A slow one delays only itself. */
const concurrentPlaces = 4
/** Short, so that jobs continue soon after a bucket has become available again. */
const longestWaitSeconds = 30

/** Returns the numbers of stored and failed files. */
export async function promoteFiles(context: Context): Promise<{ stored: number; failed: number }> {
  const busy = new Set<string>()
  const counts = { stored: 0, failed: 0 }
  const take = async () => {
    const taken = await takeFilesToPromote(context.sql, filesPerBatch, [...busy])
    if (taken.length === 0) return undefined
    busy.add(taken[0]!.place)
    return taken
  }
  await processAll(concurrentPlaces, take, async taken => {
    try {
      const isThere = await Promise.all(taken.map(file => promote(context, file)))
      const there = taken.filter((_, index) => isThere[index])
      const stored = await recordStored(context, taken, there)
      counts.stored += stored
      counts.failed += taken.length - stored
    } finally {
      busy.delete(taken[0]!.place)
    }
  })
  return counts
}

/** Records the stored files, advances the jobs that waited for them, and removes the staged uploads. */
async function recordStored(
  context: Context,
  taken: readonly FileToPromote[],
  there: readonly FileToPromote[],
): Promise<number> {
  const store = (some: readonly FileToPromote[]) =>
    storeArtifacts(
      context.sql,
      some.map(({ id }) => id),
    )
  const stored = await splitOnFailure<FileToPromote, { id: string } | undefined>(there, store, (file, error) => {
    context.log('file.unstored', { artifactId: file.id, uri: file.uri, tries: file.tries, error: String(error) })
    return undefined
  })
  const stages = new Set(taken.flatMap(({ stageId }) => (stageId === null ? [] : [stageId])))
  await Promise.all([advanceJobsOfStages(context, [...stages]), sweepFiles(context)])
  return stored.filter(file => file !== undefined).length
}

async function promote(context: Context, file: FileToPromote): Promise<boolean> {
  const { id, uri, stagedUri, size, sha256, tries } = file
  try {
    await context.files.promote(stagedUri, uri, { size, sha256 })
    return true
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    context.log('file.unstored', { artifactId: id, uri, tries, error: message })
    if (error instanceof Problem && !isWorthRetry(error)) await markArtifactLost(context.sql, id, message)
    else await retryPromotionLater(context.sql, id, message, Math.min(2 ** tries, longestWaitSeconds))
    return false
  }
}

/** Removes uploads that are no longer needed. */
export async function sweepFiles(context: Context): Promise<{ swept: number }> {
  for (let swept = 0; ; ) {
    const taken = await takeUploadsToDelete(context.sql, filesPerBatch)
    if (taken.length === 0) return { swept }
    swept += await removeStaged(context, taken)
  }
}

/**
 * Removes the files in one batch. If one of them cannot be removed, the batch is split and a later sweep takes that
 * file.
 */
async function removeStaged(context: Context, files: readonly Staged[]): Promise<number> {
  const remove = async (some: readonly Staged[]) => {
    await context.files.remove(some.map(({ stagedUri }) => stagedUri))
    await clearStagedUris(
      context.sql,
      some.map(({ id }) => id),
    )
    return [some.length]
  }
  const removed = await splitOnFailure<Staged, number>(files, remove, ({ stagedUri }, error) => {
    context.log('file.unswept', { uri: stagedUri, error: String(error) })
    return 0
  })
  return removed.reduce((sum, each) => sum + each, 0)
}

type Staged = Awaited<ReturnType<typeof takeUploadsToDelete>>[number]

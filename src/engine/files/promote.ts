/**
 * Moves the output files of successful attempts to their final locations, as recorded in the artifacts. Any number of
 * processes do this concurrently: a file promoted twice gets the same bytes twice. Failures are retried. If a file is
 * lost for good or its location is impossible, it is given up and its stage fails.
 */
import { joinUri } from '../../files/uri.ts'
import { stagingFolder } from '../../kernel/datum.ts'
import { isWorthRetry, Problem } from '../../kernel/problem.ts'
import { isId } from '../../schema/fields.ts'
import { moveArtifacts } from '../../store/files/artifacts.ts'
import {
  clearStagedUris,
  type FileToPromote,
  findDeadAttempts,
  markArtifactLost,
  rescheduleStaging,
  retryPromotionLater,
  takeFilesToPromote,
  takeStagingFolders,
  takeUploadsToDelete,
} from '../../store/files/promotions.ts'
import type { Context } from '../context.ts'
import { advanceJobsOfStages } from '../jobs/advance-job.ts'
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
    moveArtifacts(
      context.sql,
      some.map(({ id }) => id),
      { to: 'stored', actor: 'engine', cause: 'put_in_place' },
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

/**
 * Searches staging folders for files that are not recorded: a zombie may still upload after its attempt has ended and
 * been swept. Each folder is searched at growing intervals, and finally not at all.
 */
export async function sweepStagings(context: Context): Promise<{ strays: number }> {
  let strays = 0
  for (const { outputs, rounds } of await takeStagingFolders(context.sql, 10)) {
    try {
      const found = await sweepStaging(context, outputs)
      strays += found.strays
      await rescheduleStaging(context.sql, outputs, rounds, found.isAlive)
    } catch (error) {
      context.log('staging.unswept', { outputs, error: String(error) })
    }
  }
  return { strays }
}

/** Removes uploads of attempts below these outputs that can no longer succeed. */
export async function sweepStaging(context: Context, outputs: string): Promise<{ strays: number; isAlive: boolean }> {
  const folder = `${outputs}${stagingFolder}`
  let strays = 0
  let isAlive = false
  for await (const page of pages(context, folder)) {
    const files = page.map(({ path }) => ({ path, attempt: attemptOf(path) }))
    const known = files.flatMap(({ attempt }) => (attempt === undefined ? [] : [attempt]))
    const attempts = unique(known)
    const dead = await findDeadAttempts(context.sql, attempts)
    const isDead = ({ taskId, epoch }: { taskId: string; epoch: number }) => dead.has(`${taskId}/${epoch}`)
    const left = files.filter(({ attempt }) => attempt !== undefined && isDead(attempt))
    isAlive ||= dead.size < attempts.length
    strays += left.length
    await context.files.remove(left.map(({ path }) => joinUri(folder, path)))
  }
  return { strays, isAlive }
}

/** Yields nothing if the folder does not exist, because no attempt has uploaded anything. */
async function* pages(context: Context, folder: string) {
  try {
    yield* context.files.list(folder, { deep: true })
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'FILE_NOT_FOUND') throw error
  }
}

function attemptOf(path: string): { taskId: string; epoch: number } | undefined {
  const [taskId, epoch] = path.split('/')
  return isId(taskId) && /^\d{1,9}$/.test(epoch ?? '') ? { taskId, epoch: Number(epoch) } : undefined
}

function unique<T extends { taskId: string; epoch: number }>(attempts: readonly T[]): T[] {
  return [...new Map(attempts.map(attempt => [`${attempt.taskId}/${attempt.epoch}`, attempt])).values()]
}

/**
 * Takes and processes items until there are none left. The concurrent loops start only once the first item is found, so
 * the frequent case of no items costs a single query.
 */
export async function processAll<T>(
  concurrency: number,
  take: () => Promise<T | undefined>,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const processFrom = async (first: T | undefined) => {
    for (let item = first; item !== undefined; item = await take()) await work(item)
  }
  const first = await take()
  if (first === undefined) return
  const others = Array.from({ length: concurrency - 1 }, async () => processFrom(await take()))
  await Promise.all([processFrom(first), ...others])
}

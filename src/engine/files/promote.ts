/**
 * Brings the files of attempts that won to their places, from the ledger, until each is there. Any number of processes do
 * this at once: a file that two of them bring gets the same bytes twice. What fails is tried again later; only what is
 * gone for good, or can never lie there, is given up, and its stage fails.
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
import { rollUp } from '../jobs/roll-up.ts'
import { splitting } from '../split.ts'
import { workOff } from '../work-off.ts'

/** Each batch takes a few statements, whatever its size. */
const together = 100
/** Places (a bucket, this machine) that files are brought to at once: a slow one holds up itself and no other. */
const placesAtOnce = 4
/** Short: when a bucket is back, so is the job that waited for it. */
const longestWaitSeconds = 30

/** Answers with how many are in their places now, and how many could not be brought there. */
export async function promoteFiles(context: Context): Promise<{ stored: number; failed: number }> {
  const busy = new Set<string>()
  const did = { stored: 0, failed: 0 }
  const take = async () => {
    const taken = await takeFilesToPromote(context.sql, together, [...busy])
    if (taken.length === 0) return undefined
    busy.add(taken[0]!.place)
    return taken
  }
  await workOff(placesAtOnce, take, async taken => {
    try {
      const isThere = await Promise.all(taken.map(file => promote(context, file)))
      const there = taken.filter((_, index) => isThere[index])
      const stored = await finish(context, taken, there)
      did.stored += stored
      did.failed += taken.length - stored
    } finally {
      busy.delete(taken[0]!.place)
    }
  })
  return did
}

/** Writes down what is there; then what waited for it goes on, and what it lay in until now is removed. */
async function finish(
  context: Context,
  taken: readonly FileToPromote[],
  there: readonly FileToPromote[],
): Promise<number> {
  const store = (some: readonly FileToPromote[]) =>
    storeArtifacts(
      context.sql,
      some.map(({ id }) => id),
    )
  const stored = await splitting<FileToPromote, { id: string } | undefined>(there, store, (file, error) => {
    context.log('file.unstored', { artifactId: file.id, uri: file.uri, tries: file.tries, error: String(error) })
    return undefined
  })
  const stages = new Set(taken.flatMap(({ stageId }) => (stageId === null ? [] : [stageId])))
  await Promise.all([rollUp(context, [...stages]), sweepFiles(context)])
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

/** Removes uploads that nobody needs any more. */
export async function sweepFiles(context: Context): Promise<{ swept: number }> {
  for (let swept = 0; ; ) {
    const taken = await takeUploadsToDelete(context.sql, together)
    if (taken.length === 0) return { swept }
    swept += await removeStaged(context, taken)
  }
}

/** Together, or, if one of them cannot be removed, one by one: that one is taken up by a later sweep. */
async function removeStaged(context: Context, files: readonly Staged[]): Promise<number> {
  const remove = async (some: readonly Staged[]) => {
    await context.files.remove(some.map(({ stagedUri }) => stagedUri))
    await clearStagedUris(
      context.sql,
      some.map(({ id }) => id),
    )
    return [some.length]
  }
  const removed = await splitting<Staged, number>(files, remove, ({ stagedUri }, error) => {
    context.log('file.unswept', { uri: stagedUri, error: String(error) })
    return 0
  })
  return removed.reduce((sum, each) => sum + each, 0)
}

type Staged = Awaited<ReturnType<typeof takeUploadsToDelete>>[number]

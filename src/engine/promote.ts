/**
 * Brings the files of attempts that won to their places, from the ledger, until each is there. Any number of processes do
 * this at once: a file that two of them bring gets the same bytes twice. What fails is tried again later; only what is
 * gone for good, or can never lie there, is given up, and its stage fails.
 */
import { isWorthRetry, Problem } from '../kernel/problem.ts'
import {
  forgetStaged,
  loseArtifact,
  storeArtifacts,
  takeUnstored,
  takeUnswept,
  tryLater,
  type Unstored,
} from '../store/promotions.ts'
import type { Context } from './context.ts'
import { rollUp } from './roll-up.ts'

const together = 64
const longestWaitSeconds = 300

/** Answers with how many are in their places now, and how many could not be brought there. */
export async function promoteFiles(context: Context): Promise<{ stored: number; failed: number }> {
  let stored = 0
  let failed = 0
  for (;;) {
    const taken = await takeUnstored(context.sql, together)
    if (taken.length === 0) return { stored, failed }
    const done = await Promise.all(taken.map(file => promote(context, file)))
    const there = taken.filter((_, index) => done[index])
    stored += there.length
    failed += taken.length - there.length
    await storeArtifacts(
      context.sql,
      there.map(({ id }) => id),
    )
    const stages = new Set(taken.flatMap(({ stageId }) => (stageId === null ? [] : [stageId])))
    await Promise.all([rollUp(context, [...stages]), removeStaged(context, there)])
  }
}

async function promote(context: Context, file: Unstored): Promise<boolean> {
  const { id, uri, stagedUri, size, sha256, tries } = file
  try {
    await context.files.promote(stagedUri, uri, { size, sha256 })
    return true
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    context.log('file.unstored', { artifactId: id, uri, tries, error: message })
    if (error instanceof Problem && !isWorthRetry(error)) await loseArtifact(context.sql, id, message)
    else await tryLater(context.sql, id, message, Math.min(2 ** tries, longestWaitSeconds))
    return false
  }
}

/** Removes uploads that nobody needs any more. */
export async function sweepFiles(context: Context): Promise<{ swept: number }> {
  for (let swept = 0; ; ) {
    const taken = await takeUnswept(context.sql, together)
    if (taken.length === 0) return { swept }
    await removeStaged(context, taken)
    swept += taken.length
  }
}

/** What cannot be removed now is taken up by the sweep later. */
async function removeStaged(context: Context, files: readonly { id: string; stagedUri: string }[]): Promise<void> {
  if (files.length === 0) return
  try {
    await context.files.remove(files.map(({ stagedUri }) => stagedUri))
  } catch (error) {
    context.log('file.unswept', { files: files.length, error: String(error) })
    return
  }
  await forgetStaged(
    context.sql,
    files.map(({ id }) => id),
  )
}

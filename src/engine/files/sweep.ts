import { joinUri } from '../../files/uri.ts'
import { stagingFolder } from '../../kernel/datum.ts'
import { Problem } from '../../kernel/problem.ts'
import { isId } from '../../schema/fields.ts'
import { findDeadAttempts, rescheduleStaging, takeStagingFolders } from '../../store/files/staging.ts'
import type { Context } from '../context.ts'

/**
 * Looks through the folders that attempts upload to for what the ledger does not know any more: a zombie may go on
 * uploading after its attempt was over and swept. Such folders are looked into ever more rarely, and then no more.
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

/** Removes what attempts that can never win have uploaded below these outputs. */
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

/** No attempt has uploaded anything: there is no such folder. */
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

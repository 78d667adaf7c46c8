/** What workers say of files, and what can be asked about them. */
import { stagingOf } from '../kernel/datum.ts'
import { Problem } from '../kernel/problem.ts'
import type { ArtifactReport } from '../protocol/artifacts.ts'
import { type HeldTask, leaseOf } from '../protocol/sync.ts'
import {
  type HeldFiles,
  holdForFiles,
  type NewArtifact,
  noteErrors,
  noteUploads,
  registerArtifacts,
  registeredOf,
} from '../store/artifacts.ts'
import type { Sql } from '../store/sql.ts'
import { noteStaging } from '../store/staging.ts'
import type { Context } from './context.ts'
import type { Refused } from './report.ts'
import { again } from './split.ts'

/** Each attempt's files are taken all or none. Said again, they are as they were. */
export async function reportArtifacts(context: Context, items: readonly ArtifactReport[]): Promise<Refused[]> {
  const byLease = new Map<string, ArtifactReport[]>()
  for (const item of items) byLease.set(leaseOf(item), [...(byLease.get(leaseOf(item)) ?? []), item])
  const refused: Refused[] = []
  for (const files of byLease.values()) {
    const { id, epoch } = files[0]!
    try {
      await again(() => reportFiles(context.sql, { id, epoch }, files))
    } catch (error) {
      if (!(error instanceof Problem) || error.code === 'STORE_UNAVAILABLE') throw error
      const { code, message } = error
      refused.push(...files.map(item => ({ item, refusal: { id, epoch, code, message } })))
    }
  }
  return refused
}

/** Most often all are uploads, which one statement notes. */
function reportFiles(sql: Sql, held: HeldTask, files: readonly ArtifactReport[]): Promise<void> {
  const isPlain = files.every(({ state }) => state === 'uploaded')
  // What is not known is refused with all the others of its attempt.
  return isPlain && files.length === 1 ? upload(sql, held, files) : sql.begin(tx => reportOf(tx, held, files))
}

async function reportOf(tx: Sql, held: HeldTask, files: readonly ArtifactReport[]): Promise<void> {
  const task = await holdForFiles(tx, held)
  if (task === undefined) throw new Problem('LEASE_LOST', { ...held })
  const said = (state: ArtifactReport['state']) => files.filter(file => file.state === state)
  const registered = said('registered').map(file => placed(file, held, task))
  if (registered.length > 0) await register(tx, { ...held, ...task }, registered)
  await upload(tx, held, said('uploaded'))
  const failed = said('error').map(({ uri, error = 'It could not be made.' }) => ({ uri, error }))
  if (failed.length > 0) await noteErrors(tx, { ...held, ...task }, failed)
}

/** One that was said before is as good. */
async function upload(tx: Sql, lease: HeldTask, files: readonly ArtifactReport[]): Promise<void> {
  if (files.length === 0) return
  const uploads = files.map(({ uri, size = 0, sha256 = '' }) => ({ uri, size, sha256 }))
  const { held, missed } = await noteUploads(tx, lease, uploads)
  if (!held) throw new Problem('LEASE_LOST', { ...lease })
  if (missed.length === 0) return
  const known = await registeredOf(
    tx,
    lease,
    missed.map(({ uri }) => uri),
  )
  const unknown = missed.find(({ uri }) => !known.has(uri))
  if (unknown !== undefined) throw new Problem('ARTIFACT_UNKNOWN', { ...lease, uri: unknown.uri })
}

async function register(tx: Sql, task: HeldTask & HeldFiles, files: readonly NewArtifact[]): Promise<void> {
  const [first] = await registerArtifacts(tx, task, files)
  if (first !== undefined) {
    const { uri, taskId: other, isFinal } = first
    throw new Problem(isFinal ? 'ARTIFACT_CONFLICT' : 'ARTIFACT_CONTESTED', { uri, task: task.id, other })
  }
  if (task.outputs !== null) await noteStaging(tx, task.outputs)
}

/**
 * A file's place is below the outputs of its task, and what is staged below its attempt's own folder: whoever promotes
 * it does so with rights of its own, and must not be led elsewhere.
 */
function placed(
  { name, uri, stagedUri }: ArtifactReport,
  { id, epoch }: HeldTask,
  { outputs }: HeldFiles,
): NewArtifact {
  const isInside = (folder: string, inner: string) =>
    inner.startsWith(folder) &&
    !inner
      .slice(folder.length)
      .split('/')
      .some(part => /^(|\.|\.\.|%2e|\.%2e|%2e\.|%2e%2e)$/i.test(part))
  if (outputs === null) {
    if (stagedUri !== undefined) throw new Problem('ARTIFACT_OUTSIDE', { id, uri: stagedUri, outputs })
    return { name, uri, stagedUri: null }
  }
  if (!isInside(outputs, uri) || uri.startsWith(`${outputs}.pawl/`))
    throw new Problem('ARTIFACT_OUTSIDE', { id, uri, outputs })
  if (stagedUri === undefined) return { name, uri, stagedUri: null }
  const folder = stagingOf(outputs, id, epoch)
  if (!isInside(folder, stagedUri)) throw new Problem('ARTIFACT_OUTSIDE', { id, uri: stagedUri, outputs: folder })
  return { name, uri, stagedUri }
}

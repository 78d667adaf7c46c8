/** What workers say of files, and what can be asked about them. */
import { checkFolder, placeOfFile, uriOf } from '../files/uri.ts'
import { stagingFolder, stagingOf } from '../kernel/datum.ts'
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

/** One upload, written as it was registered, is noted by one statement; all else in a transaction. */
async function reportFiles(sql: Sql, lease: HeldTask, files: readonly ArtifactReport[]): Promise<void> {
  const [only] = files
  if (files.length === 1 && only!.state === 'uploaded') {
    const { missed } = await noteUploads(sql, lease, [uploadOf(only!, only!.uri)])
    if (missed.length === 0) return
  }
  await sql.begin(tx => reportOf(tx, lease, files))
}

const uploadOf = ({ size = 0, sha256 = '' }: ArtifactReport, uri: string) => ({ uri, size, sha256 })

async function reportOf(tx: Sql, held: HeldTask, files: readonly ArtifactReport[]): Promise<void> {
  const task = await holdForFiles(tx, held)
  if (task === undefined) throw new Problem('LEASE_LOST', { ...held })
  const said = (state: ArtifactReport['state']) => files.filter(file => file.state === state)
  const registered = said('registered').map(file => placed(file, held, task))
  if (registered.length > 0) await register(tx, { ...held, ...task }, registered)
  await upload(tx, held, task, said('uploaded'))
  const failed = said('error').map(({ uri, error = 'It could not be made.' }) => ({ uri: spelled(uri, task), error }))
  if (failed.length > 0) await noteErrors(tx, { ...held, ...task }, failed)
}

/** One that was said before is as good. */
async function upload(tx: Sql, lease: HeldTask, task: HeldFiles, files: readonly ArtifactReport[]): Promise<void> {
  if (files.length === 0) return
  const uploads = files.map(file => uploadOf(file, spelled(file.uri, task)))
  const { missed } = await noteUploads(tx, lease, uploads)
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
function placed({ name, uri, stagedUri }: ArtifactReport, { id, epoch }: HeldTask, task: HeldFiles): NewArtifact {
  const { outputs } = task
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
  const place = isInside(outputs, uri) ? spelled(uri, task) : undefined
  if (place === undefined || place.startsWith(`${checkFolder(outputs)}${stagingFolder}`))
    throw new Problem('ARTIFACT_OUTSIDE', { id, uri, outputs })
  if (stagedUri === undefined) return { name, uri: place, stagedUri: null }
  const folder = stagingOf(outputs, id, epoch)
  if (!isInside(folder, stagedUri)) throw new Problem('ARTIFACT_OUTSIDE', { id, uri: stagedUri, outputs: folder })
  return { name, uri: place, stagedUri: spelled(stagedUri, task) }
}

/** A place can be written in many ways (`(` and `%28`), and is one place. Where Pawl does not put files, it is as said. */
function spelled(uri: string, { outputs }: HeldFiles): string {
  return outputs === null ? uri : uriOf(placeOfFile(uri))
}

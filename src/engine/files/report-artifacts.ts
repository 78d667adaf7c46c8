/** What workers say of files, and what can be asked about them. */
import { checkFolder, placeOfFile, uriOf } from '../../files/uri.ts'
import { stagingFolder, stagingOf } from '../../kernel/datum.ts'
import { Problem, willPass } from '../../kernel/problem.ts'
import type { ArtifactReport, SaidArtifact } from '../../protocol/files/artifacts.ts'
import { type HeldTask, leaseOf } from '../../protocol/tasks/sync.ts'
import type { Sql } from '../../store/driver/sql.ts'
import {
  findRegistered,
  type HeldFiles,
  lockForFiles,
  type NewArtifact,
  recordFileErrors,
  recordUploads,
  registerArtifacts,
  registeredUris,
} from '../../store/files/artifacts.ts'
import { recordStagingFolder } from '../../store/files/staging.ts'
import type { Context } from '../context.ts'
import { again } from '../split.ts'
import type { Refused } from '../tasks/write-reports.ts'
import { checkRoot } from './file-rules.ts'

/** Each attempt's files are taken all or none. Said again, they are as they were. */
export async function reportArtifacts(context: Context, items: readonly ArtifactReport[]): Promise<Refused[]> {
  const byLease = new Map<string, ArtifactReport[]>()
  for (const item of items) {
    const files = byLease.get(leaseOf(item))
    if (files === undefined) byLease.set(leaseOf(item), [item])
    else files.push(item)
  }
  const refused: Refused[] = []
  for (const files of byLease.values()) {
    const { id, epoch } = files[0]!
    try {
      await again(() => reportFiles(context, { id, epoch }, files))
    } catch (error) {
      if (!(error instanceof Problem) || willPass(error)) throw error
      const { code, message } = error
      refused.push(...files.map(item => ({ item, refusal: { id, epoch, code, message } })))
    }
  }
  return refused
}

/**
 * Registers files as all that the attempt puts out: not if it has registered others, whatever has become of those. Said
 * again, it is as it was.
 */
export function registerWhole(context: Context, lease: HeldTask, files: readonly SaidArtifact[]): Promise<void> {
  return again(() =>
    context.sql.begin(async tx => {
      const task = await hold(tx, lease)
      const before = await registeredUris(tx, lease)
      if (before.size === 0) return reportOf(context, tx, lease, files, task)
      const places = new Set(files.map(file => placed(file, lease, task).uri))
      const isSame = places.size === before.size && [...places].every(uri => before.has(uri))
      if (!isSame) throw new Problem('ARTIFACTS_DIFFER', { ...lease, registered: [...before].slice(0, 10) })
    }),
  )
}

/** One upload, written as it was registered, is noted by one statement; all else in a transaction. */
async function reportFiles(context: Context, lease: HeldTask, files: readonly ArtifactReport[]): Promise<void> {
  const [only] = files
  if (files.length === 1 && only!.state === 'uploaded') {
    const { missed } = await recordUploads(context.sql, lease, [uploadOf(only!, only!.uri)])
    if (missed.length === 0) return
  }
  await context.sql.begin(async tx => reportOf(context, tx, lease, files, await hold(tx, lease)))
}

async function hold(tx: Sql, lease: HeldTask): Promise<HeldFiles> {
  const task = await lockForFiles(tx, lease)
  if (task === undefined) throw new Problem('LEASE_LOST', { ...lease })
  return task
}

const uploadOf = ({ size, sha256 }: SaidArtifact, uri: string) => ({
  uri,
  size: size ?? null,
  sha256: sha256 ?? null,
})

async function reportOf(
  context: Context,
  tx: Sql,
  held: HeldTask,
  files: readonly SaidArtifact[],
  task: HeldFiles,
): Promise<void> {
  const said = (state: SaidArtifact['state']) => files.filter(file => file.state === state)
  const registered = said('registered').map(file => placed(file, held, task))
  if (task.outputs !== null) checkRoot(context, held.id, task.outputs)
  if (registered.length > 0) await register(tx, { ...held, ...task }, registered)
  await upload(tx, held, task, said('uploaded'))
  const failed = said('error').map(({ uri, error = 'It could not be made.' }) => ({ uri: spelled(uri, task), error }))
  if (failed.length > 0) await recordFileErrors(tx, { ...held, ...task }, failed)
}

/** One that was said before is as good. */
async function upload(tx: Sql, lease: HeldTask, task: HeldFiles, files: readonly SaidArtifact[]): Promise<void> {
  if (files.length === 0) return
  const uploads = files.map(file => uploadOf(file, spelled(file.uri, task)))
  const { missed } = await recordUploads(tx, lease, uploads)
  if (missed.length === 0) return
  const known = await findRegistered(
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
  if (task.outputs !== null) await recordStagingFolder(tx, task.outputs)
}

/**
 * A file's place is below the outputs of its task, and what is staged below its attempt's own folder: whoever promotes
 * it does so with rights of its own, and must not be led elsewhere.
 */
function placed({ name, uri, stagedUri }: SaidArtifact, { id, epoch }: HeldTask, task: HeldFiles): NewArtifact {
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

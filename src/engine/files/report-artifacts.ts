/** Handles reports of workers about output files. */
import { checkFolder, placeOfFile, uriOf } from '../../files/uri.ts'
import { stagingFolder, stagingOf } from '../../kernel/datum.ts'
import { isTransient, Problem } from '../../kernel/problem.ts'
import type { ArtifactReport, ArtifactView, ReportedArtifact } from '../../protocol/files/artifacts.ts'
import { type HeldTask, leaseOf } from '../../protocol/tasks/sync.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { storeFault } from '../../store/driver/store-fault.ts'
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
import { recordStagingFolder } from '../../store/files/promotions.ts'
import { registerFirst } from '../../store/files/register-first.ts'
import type { Context } from '../context.ts'
import { isConflict, type Refused, refusal, retryConflicts } from '../retry.ts'
import { checkRoot } from './file-rules.ts'
import { toArtifactView } from './read-artifacts.ts'

/** The files of each attempt are accepted all or none. Repeated reports change nothing. */
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
      await retryConflicts(() => reportFiles(context, { id, epoch }, files))
    } catch (error) {
      // A task that another transaction has locked must not delay the reports of others.
      if (storeFault(error) === 'locked')
        refused.push(...files.map(item => ({ item, refusal: refusal(item, 'TASK_BUSY') })))
      else if (!(error instanceof Problem) || isTransient(error)) throw error
      else {
        const { code, message } = error
        refused.push(...files.map(item => ({ item, refusal: { id, epoch, code, message } })))
      }
    }
  }
  return refused
}

/**
 * Registers the complete set of the attempt's output files. Refused if the attempt has registered other files, whatever
 * their state. Repeating the same set is accepted.
 */
export function registerAll(context: Context, lease: HeldTask, files: readonly ReportedArtifact[]): Promise<void> {
  return retryConflicts(() =>
    context.sql.begin(async tx => {
      const task = await requireLease(tx, lease)
      const before = await registeredUris(tx, lease)
      if (before.size === 0) return writeReport(context, tx, lease, files, task)
      const uris = new Set(files.map(file => checkPlacement(file, lease, task).uri))
      const isSame = uris.size === before.size && [...uris].every(uri => before.has(uri))
      if (!isSame) throw new Problem('ARTIFACTS_DIFFER', { ...lease, registered: [...before].slice(0, 10) })
    }),
  )
}

/**
 * Registers the complete set of the attempt's output files, which are written to their places directly, in one
 * statement. Returns undefined if that is not possible, and `registerAll` must decide: the task is not held, has files
 * already or has other outputs, or a URI is taken.
 */
export async function registerFirstFiles(
  context: Context,
  lease: HeldTask,
  outputs: string,
  files: readonly ReportedArtifact[],
): Promise<ArtifactView[] | undefined> {
  const placed = files.map(file => checkPlacement(file, lease, { outputs }))
  checkRoot(context, lease.id, outputs)
  if (placed.some(({ stagedUri }) => stagedUri !== null)) return undefined
  try {
    const rows = await registerFirst(context.sql, lease, outputs, placed)
    return rows.length === 0 ? undefined : rows.map(toArtifactView)
  } catch (error) {
    if (isConflict(error)) return undefined
    throw error
  }
}

/** A single upload, under the URI it was registered with, takes one statement. Everything else takes a transaction. */
async function reportFiles(context: Context, lease: HeldTask, files: readonly ArtifactReport[]): Promise<void> {
  const [only] = files
  if (files.length === 1 && only!.state === 'uploaded') {
    const { missed } = await recordUploads(context.sql, lease, [uploadOf(only!, only!.uri)])
    if (missed.length === 0) return
  }
  await context.sql.begin(async tx => writeReport(context, tx, lease, files, await requireLease(tx, lease)))
}

async function requireLease(tx: Sql, lease: HeldTask): Promise<HeldFiles> {
  const task = await lockForFiles(tx, lease)
  if (task === undefined) throw new Problem('LEASE_LOST', { ...lease })
  return task
}

const uploadOf = ({ size, sha256 }: ReportedArtifact, uri: string) => ({
  uri,
  size: size ?? null,
  sha256: sha256 ?? null,
})

async function writeReport(
  context: Context,
  tx: Sql,
  held: HeldTask,
  files: readonly ReportedArtifact[],
  task: HeldFiles,
): Promise<void> {
  const inState = (state: ReportedArtifact['state']) => files.filter(file => file.state === state)
  const registered = inState('registered').map(file => checkPlacement(file, held, task))
  if (task.outputs !== null) checkRoot(context, held.id, task.outputs)
  if (registered.length > 0) await register(tx, { ...held, ...task }, registered)
  await upload(tx, held, task, inState('uploaded'))
  const failed = inState('error').map(({ uri, error = 'The file could not be produced.' }) => ({
    uri: normalized(uri, task),
    error,
  }))
  if (failed.length > 0) await recordFileErrors(tx, { ...held, ...task }, failed)
}

/** Reporting an upload again is accepted. */
async function upload(tx: Sql, lease: HeldTask, task: HeldFiles, files: readonly ReportedArtifact[]): Promise<void> {
  if (files.length === 0) return
  const uploads = files.map(file => uploadOf(file, normalized(file.uri, task)))
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
  if (task.outputs !== null && files.some(({ stagedUri }) => stagedUri !== null))
    await recordStagingFolder(tx, task.outputs)
}

/**
 * A file must be below the outputs of its task, and a staged file below the folder of its attempt. Files are promoted
 * with Pawl's own permissions, so a task must not be able to name other locations.
 */
function checkPlacement(
  { name, uri, stagedUri }: ReportedArtifact,
  { id, epoch }: HeldTask,
  task: Pick<HeldFiles, 'outputs'>,
): NewArtifact {
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
  const place = isInside(outputs, uri) ? normalized(uri, task) : undefined
  if (place === undefined || place.startsWith(`${checkFolder(outputs)}${stagingFolder}`))
    throw new Problem('ARTIFACT_OUTSIDE', { id, uri, outputs })
  if (stagedUri === undefined) return { name, uri: place, stagedUri: null }
  const folder = stagingOf(outputs, id, epoch)
  if (!isInside(folder, stagedUri)) throw new Problem('ARTIFACT_OUTSIDE', { id, uri: stagedUri, outputs: folder })
  return { name, uri: place, stagedUri: normalized(stagedUri, task) }
}

/**
 * A location can be spelled in several ways (`(` and `%28`). URIs of files that Pawl does not promote stay as reported.
 */
function normalized(uri: string, { outputs }: Pick<HeldFiles, 'outputs'>): string {
  return outputs === null ? uri : uriOf(placeOfFile(uri))
}

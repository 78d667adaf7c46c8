/**
 * The outputs of a command: finds the files in its output folder, registers and uploads them, and reports their
 * checksums.
 */
import { lstat, readdir, realpath, stat } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FileStore } from '../files/file-store.ts'
import { byBytes, encodePath, isHidden, nameOf } from '../files/uri.ts'
import { stagingOf } from '../kernel/datum.ts'
import { isTransient, Problem } from '../kernel/problem.ts'
import { type ArtifactPort, mostWithSuccess, type UploadedFile } from '../protocol/files/artifacts.ts'
import type { TaskContext } from '../worker/define-task.ts'
import { Failed, GiveUp } from '../worker/errors.ts'
import { quote, toAttemptError } from './attempt-error.ts'
import { inParallel } from './in-parallel.ts'

export interface LeftFile {
  /** Relative to the output folder, with `/` as the separator. */
  readonly name: string
  /** The local path of the file. */
  readonly path: string
}

/**
 * Returns regular files sorted by name; empty folders are ignored. A link to a file in the folder counts as that file.
 * Anything else is an error that names it, because an output that is left out silently is noticed too late. `out`: the
 * real path of the folder, because the command may have replaced the folder or a parent with a link.
 */
export async function scanOutputs(out: string): Promise<LeftFile[]> {
  const root = await realpath(out).catch(() => undefined)
  if (root !== out || !(await lstat(out)).isDirectory()) {
    throw new GiveUp('The output folder was removed or replaced by the command.')
  }
  const found = await scan(root, root, '').catch(error => {
    throw toAttemptError(error, 'Reading the outputs')
  })
  // Listings would hide it, so it would be stored and never found.
  const hidden = found.find(({ name }) => isHidden(name))
  if (hidden !== undefined) throw cannotCarry(hidden.name, 'the name is reserved for Pawl')
  return found.sort((one, other) => byBytes(one.name, other.name))
}

async function scan(root: string, folder: string, prefix: string): Promise<LeftFile[]> {
  const files: LeftFile[] = []
  // Read as bytes, so that names that are not UTF-8 are detected.
  for (const entry of await readdir(folder, { withFileTypes: true, encoding: 'buffer' })) {
    const part = nameOf(entry.name as unknown as Buffer)
    const name = prefix + part
    const path = join(folder, part)
    if (entry.isFile()) files.push({ name, path })
    else if (entry.isDirectory()) files.push(...(await scan(root, path, `${name}/`)))
    else if (entry.isSymbolicLink()) files.push({ name, path: await linked(root, path, name) })
    else throw cannotCarry(name, 'it is neither a file nor a folder')
  }
  return files
}

async function linked(root: string, path: string, name: string): Promise<string> {
  const target = await realpath(path).catch(() => undefined)
  if (target === undefined) throw cannotCarry(name, 'it is a broken link')
  if (!target.startsWith(root + sep))
    throw cannotCarry(name, 'it is a link to a file outside the folder; copy the file instead')
  if (!(await stat(target)).isFile()) throw cannotCarry(name, 'it is a link to something other than a file')
  return target
}

function cannotCarry(name: string, why: string): GiveUp {
  return new GiveUp(`The output ${quote(name)} cannot be stored: ${why}.`)
}

export interface Uploading {
  readonly files: FileStore
  readonly artifacts: ArtifactPort
  readonly outputs: string
  readonly atOnce: number
  readonly ctx: Pick<TaskContext, 'id' | 'epoch' | 'hardSignal' | 'step'>
}

/** Files per call. */
const perCall = 1000
export const uploadTries = { times: 4, firstMs: 200 }

/**
 * Uploads all files or throws. Without files it makes no call. After the lease is lost, nothing more is sent, and files
 * under its prefix are never used. After a soft cancel it continues: the work is done, and the grace period decides
 * whether it counts.
 */
export async function upload(left: readonly LeftFile[], uploading: Uploading): Promise<UploadedFile[]> {
  if (left.length === 0) return []
  const { files, artifacts, outputs, atOnce, ctx } = uploading
  const staging = stagingOf(outputs, ctx.id, ctx.epoch)
  const all = left.map(({ name, path }) => {
    const rest = encodePath(name)
    return { name, path, uri: outputs + rest, stagedUri: staging + rest }
  })
  for (const some of batches(all)) {
    const registered = some.map(({ name, uri, stagedUri }) => ({ name, uri, stagedUri }))
    await tried('Registering the outputs', ctx.hardSignal, () => artifacts.register(registered))
  }
  const uploaded = new Map<string, UploadedFile>()
  await inParallel(all, atOnce, async ({ name, path, uri, stagedUri }) => {
    const doing = `Uploading the output ${quote(name)}`
    const { size, sha256 } = await tried(doing, ctx.hardSignal, async () => {
      return await files.put(path, stagedUri, ctx.hardSignal).catch(error => {
        throw toAttemptError(error, doing)
      })
    })
    uploaded.set(name, { name, uri, size, sha256 })
  })
  const inOrder = all.map(({ name }) => uploaded.get(name)!)
  ctx.step('commit')
  if (artifacts.uploadedWithSuccess !== undefined && inOrder.length <= mostWithSuccess) {
    artifacts.uploadedWithSuccess(inOrder)
    return inOrder
  }
  for (const some of batches(inOrder)) {
    await tried('Reporting the uploaded outputs', ctx.hardSignal, () => artifacts.uploaded(some))
  }
  return inOrder
}

function* batches<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < items.length; at += perCall) yield items.slice(at, at + perCall)
}

/** A short outage of the storage must not cost finished work. After a few tries, the attempt fails. */
async function tried<T>(doing: string, signal: AbortSignal, act: () => Promise<T>): Promise<T> {
  for (let time = 1; ; time++) {
    signal.throwIfAborted()
    try {
      return await act()
    } catch (error) {
      signal.throwIfAborted()
      // A conflict is permanent. If another task is only writing the file, a later attempt may find it free.
      if (error instanceof Problem && error.code === 'ARTIFACT_CONFLICT') throw new GiveUp(error.message)
      if (error instanceof GiveUp) throw error
      if (time === uploadTries.times || isRefusal(error)) throw error instanceof Failed ? error : failed(doing, error)
      await sleep(uploadTries.firstMs * 2 ** (time - 1) * (0.5 + Math.random() / 2), undefined, { signal }).catch(
        () => {},
      )
    }
  }
}

/** The engine would refuse it again. */
function isRefusal(error: unknown): boolean {
  return error instanceof Problem && error.status < 500 && !isTransient(error)
}

function failed(doing: string, error: unknown): Error {
  const { message } = error instanceof Error ? error : new Error(String(error))
  return new Error(message.startsWith(doing) ? message : `${doing} failed: ${message}`, { cause: error })
}

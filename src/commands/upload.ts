/** Uploads the outputs of a command: registers them, uploads them, then reports their checksums. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FileStore } from '../files/file-store.ts'
import { encodePath } from '../files/uri.ts'
import { stagingOf } from '../kernel/datum.ts'
import { isTransient, Problem } from '../kernel/problem.ts'
import type { ArtifactPort, UploadedFile } from '../protocol/files/artifacts.ts'
import type { TaskContext } from '../worker/context.ts'
import { Failed, GiveUp } from '../worker/errors.ts'
import { toAttemptError } from './attempt-error.ts'
import { inParallel } from './in-parallel.ts'
import type { LeftFile } from './outputs.ts'
import { quote } from './safe-path.ts'

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
 * Uploads all files or throws. After the lease is lost, nothing more is sent, and files under its prefix are never
 * used. After a soft cancel it continues: the work is done, and the grace period decides whether it counts.
 */
export async function upload(left: readonly LeftFile[], uploading: Uploading): Promise<UploadedFile[]> {
  const { files, artifacts, outputs, atOnce, ctx } = uploading
  const staging = stagingOf(outputs, ctx.id, ctx.epoch)
  const all = left.map(({ name, path }) => {
    const rest = encodePath(name)
    return { name, path, uri: outputs + rest, stagedUri: staging + rest }
  })
  for (const some of batches(all)) {
    const registered = some.map(({ name, uri, stagedUri }) => ({ name, uri, stagedUri }))
    await tried('Telling of the outputs', ctx.hardSignal, () => artifacts.register(registered))
  }
  const uploaded = new Map<string, UploadedFile>()
  await inParallel(all, atOnce, async ({ name, path, uri, stagedUri }) => {
    const doing = `Sending the output ${quote(name)}`
    const { size, sha256 } = await tried(doing, ctx.hardSignal, async () => {
      return await files.put(path, stagedUri, ctx.hardSignal).catch(error => {
        throw toAttemptError(error, doing)
      })
    })
    uploaded.set(name, { name, uri, size, sha256 })
  })
  const inOrder = all.map(({ name }) => uploaded.get(name)!)
  ctx.step('commit')
  for (const some of batches(inOrder)) {
    await tried('Telling that the outputs are there', ctx.hardSignal, () => artifacts.uploaded(some))
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
      if (time === uploadTries.times || isSaid(error)) throw error instanceof Failed ? error : failed(doing, error)
      await sleep(uploadTries.firstMs * 2 ** (time - 1) * (0.5 + Math.random() / 2), undefined, { signal }).catch(
        () => {},
      )
    }
  }
}

/** A rejection by the engine would be repeated. */
function isSaid(error: unknown): boolean {
  return error instanceof Problem && error.status < 500 && !isTransient(error)
}

function failed(doing: string, error: unknown): Error {
  const { message } = error instanceof Error ? error : new Error(String(error))
  return new Error(message.startsWith(doing) ? message : `${doing} failed: ${message}`, { cause: error })
}

/** Brings what a command left to where the job wants it: announced first, then sent, then reported with its checksum. */
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

/** Files told of in one call. */
const perCall = 1000
export const uploadTries = { times: 4, firstMs: 200 }

/**
 * All or an error. Whoever lost the lease sends nothing more; what lies under its prefix is never looked at again. After
 * a soft cancel it goes on: the work is done, and its grace decides whether it counts.
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

/** A place that is away for a moment must not cost the work that was done; after a few tries it is a failed attempt. */
async function tried<T>(doing: string, signal: AbortSignal, act: () => Promise<T>): Promise<T> {
  for (let time = 1; ; time++) {
    signal.throwIfAborted()
    try {
      return await act()
    } catch (error) {
      signal.throwIfAborted()
      // Another task has this file for good; where one is only making it, a later attempt may find it free.
      if (error instanceof Problem && error.code === 'ARTIFACT_CONFLICT') throw new GiveUp(error.message)
      if (error instanceof GiveUp) throw error
      if (time === uploadTries.times || isSaid(error)) throw error instanceof Failed ? error : failed(doing, error)
      await sleep(uploadTries.firstMs * 2 ** (time - 1) * (0.5 + Math.random() / 2), undefined, { signal }).catch(
        () => {},
      )
    }
  }
}

/** What the engine refuses, it refuses again. */
function isSaid(error: unknown): boolean {
  return error instanceof Problem && error.status < 500 && !isTransient(error)
}

function failed(doing: string, error: unknown): Error {
  const { message } = error instanceof Error ? error : new Error(String(error))
  return new Error(message.startsWith(doing) ? message : `${doing} failed: ${message}`, { cause: error })
}

/**
 * Finds datums that an earlier task has already processed: the same command and the same inputs, compared by content
 * and not by name.
 */
import { createHash } from 'node:crypto'
import { joinUri } from '../../files/uri.ts'
import type { DatumInput, FilesPlan } from '../../kernel/datum.ts'
import { doneBefore, type Reused } from '../../store/files/listings.ts'
import { type ArtifactRow, outputsOfTasks, storedFilesAfter } from '../../store/files/read-artifacts.ts'
import type { Context } from '../context.ts'

interface Made {
  readonly id: string
  readonly inputs: readonly DatumInput[]
}

/**
 * Computes the digest of each datum and finds those that need not run. `keepListing` is called between chunks, because
 * reading the inputs takes a while.
 */
export async function findReusable(
  context: Context,
  jobId: string,
  plan: FilesPlan,
  made: readonly Made[],
  keepListing: () => Promise<void>,
): Promise<{ digests: { taskId: string; digest: string }[]; reused: Reused[] }> {
  const digests = await inChunks(
    made,
    async ({ id, inputs }) => ({ taskId: id, digest: await digestOf(context, plan, inputs) }),
    keepListing,
  )
  const done = await doneBefore(
    context.sql,
    jobId,
    digests.map(({ digest }) => digest),
  )
  // If a job has equal datums, only the first may be skipped: all of them would produce the same files.
  const first = new Map(digests.toReversed().map(({ digest, taskId }) => [digest, taskId]))
  const found = [...done].map(([digest, doneBy]) => ({ taskId: first.get(digest)!, doneBy }))
  const outputs = await outputsOfTasks(
    context.sql,
    found.map(({ doneBy }) => doneBy),
  )
  const taken = new Set<string>()
  const clear = found.filter(({ doneBy }) => {
    const uris = outputs.filter(({ taskId }) => taskId === doneBy).map(({ uri }) => uri)
    const isClear = !uris.some(uri => taken.has(uri))
    for (const uri of uris) taken.add(uri)
    return isClear
  })
  const isThere = await inChunks(
    clear,
    ({ doneBy }) =>
      allExist(
        context,
        outputs.filter(({ taskId }) => taskId === doneBy),
      ),
    keepListing,
  )
  return { digests, reused: clear.filter((_, index) => isThere[index]) }
}

/** A file that was removed or replaced since is produced again. */
async function allExist(context: Context, outputs: readonly ArtifactRow[]): Promise<boolean> {
  for (const { uri, size, sha256 } of outputs) {
    const stat = await context.files.stat(uri)
    if (stat === undefined || stat.size !== size) return false
    if ((stat.sha256 ?? (await hashOf(context, uri))) !== sha256) return false
  }
  return true
}

async function digestOf(context: Context, plan: FilesPlan, inputs: readonly DatumInput[]): Promise<string> {
  const sums = await Promise.all(inputs.map(async input => [input.name, input.path, await contentOf(context, input)]))
  const { command, env, secrets, mount } = plan.run!
  const sorted = [env, secrets].map(map => Object.entries(map).toSorted(([one], [other]) => (one < other ? -1 : 1)))
  const image = plan.runner?.kind === 'kubernetes' ? plan.runner.image : null
  return sha256(JSON.stringify([command, sorted, mount, plan.outputs, image, sums]))
}

/** Identifies the content of a file, or of everything in a folder. */
async function contentOf(context: Context, { uri, path, version, stageId }: DatumInput): Promise<unknown> {
  if (!uri.endsWith('/')) return fileVersion(context, uri, version)
  if (stageId !== undefined) return stageFileSums(context, stageId, path)
  const sums: unknown[] = []
  for await (const page of context.files.list(uri, { deep: true })) {
    for (const { path, version } of page) sums.push([path, await fileVersion(context, joinUri(uri, path), version)])
  }
  return sums
}

async function stageFileSums({ sql }: Context, stageId: string, prefix: string): Promise<unknown[]> {
  const sums: unknown[] = []
  for await (const files of storedFilesAfter(sql, stageId, prefix)) {
    sums.push(...files.map(({ name, sha256 }) => [name, sha256]))
  }
  return sums
}

/** A local file is hashed, because its time and size prove little. A bucket keeps a checksum. */
async function fileVersion(context: Context, uri: string, version: string | undefined): Promise<string | undefined> {
  return uri.startsWith('file:') ? hashOf(context, uri) : version
}

async function hashOf({ files }: Context, uri: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of await files.open(uri)) hash.update(chunk)
  return hash.digest('hex')
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

const concurrency = 16

async function inChunks<In, Out>(
  items: readonly In[],
  work: (item: In) => Promise<Out>,
  afterChunk: () => Promise<void>,
): Promise<Out[]> {
  const out: Out[] = []
  for (let from = 0; from < items.length; from += concurrency) {
    out.push(...(await Promise.all(items.slice(from, from + concurrency).map(work))))
    await afterChunk()
  }
  return out
}

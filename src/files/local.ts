/**
 * `file://`: folders of this machine, or of a file system shared by several machines. A file is written under a
 * temporary name next to its target, flushed to disk, and renamed. So readers see either the old or the new file, even
 * after a crash. A symbolic link is replaced and never written through. Listings hide the leftovers of a writer that
 * was killed.
 */
import { createHash, randomUUID } from 'node:crypto'
import type { BigIntStats } from 'node:fs'
import { constants, type FileHandle, link, lstat, open, rename, rm, rmdir, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Problem } from '../kernel/problem.ts'
import type { FileStore, Kept } from './file-store.ts'
import { chunksOf, codeOf, localProblem, stepBytes, withFileErrors } from './local-file.ts'
import { type Fence, flush, type HeldFolder, listLocal, makeFence, versionOf } from './local-folders.ts'
import { checkFolder, checkLocalPath, isHidden, parseUri, placeOfFile, unfinished } from './uri.ts'

/** `roots`: the folders that everything must be in, links included; undefined allows any. */
export function openLocalFiles(roots?: readonly string[]): FileStore {
  const fence = makeFence(roots)
  return {
    async *list(folder, ask = {}) {
      yield* listLocal(parseUri(checkFolder(folder)).path, ask, fence)
    },
    open: async (uri, signal) => openFile(fence, fileOf(uri), signal),
    put: async (path, uri, signal) => putFile(fence, path, fileOf(uri), signal),
    promote: async (staged, uri, kept) => promote(fence, fileOf(staged), fileOf(uri), kept),
    async stat(uri) {
      const path = fileOf(uri)
      const facts = await withFileErrors(path, () => statWithin(fence, path).catch(absent))
      return facts?.isFile() ? { size: Number(facts.size), version: versionOf(facts) } : undefined
    },
    async remove(uris) {
      for (const path of uris.map(fileOf)) {
        await withFileErrors(path, () => removeFile(fence, path).catch(absent))
        await prune(dirname(path))
      }
    },
    async close() {},
  }
}

function fileOf(uri: string): string {
  const { path } = placeOfFile(uri)
  checkLocalPath(path)
  return `/${path}`
}

/** A missing file, or a file where a parent folder should be: both count as absent. */
function absent(error: unknown): undefined {
  if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR') throw error
}

const toRead = constants.O_RDONLY | constants.O_NONBLOCK

async function statWithin(fence: Fence, path: string): Promise<BigIntStats> {
  await using folder = await fence.enter(dirname(path))
  const facts = await lstat(join(folder.here, basename(path)), { bigint: true })
  if (!facts.isSymbolicLink()) return facts
  await using handle = await open(path, toRead)
  await fence.check(handle, path)
  return await handle.stat({ bigint: true })
}

async function removeFile(fence: Fence, path: string): Promise<void> {
  await using folder = await fence.enter(dirname(path))
  await unlink(join(folder.here, basename(path)))
}

async function openFile(fence: Fence, path: string, signal?: AbortSignal): Promise<Readable> {
  signal?.throwIfAborted()
  const handle = await withFileErrors(path, () => open(path, toRead))
  try {
    await fence.check(handle, path)
    if (!(await handle.stat()).isFile()) throw new Problem('NAME_REFUSED', { name: path, why: 'it is not a file' })
    signal?.throwIfAborted()
  } catch (error) {
    await handle.close()
    throw signal?.aborted ? error : localProblem(error, path)
  }
  const stream = handle.createReadStream({ highWaterMark: 1 << 18, ...(signal && { signal }) })
  // An abort before the first read would otherwise be an error that nobody handles. The reader gets it as well.
  stream.on('error', () => {})
  return Readable.from(translateErrors(stream, path), { objectMode: false }).once('close', () => stream.destroy())
}

async function* translateErrors(stream: Readable, path: string): AsyncGenerator<Buffer> {
  try {
    yield* stream
  } catch (error) {
    throw localProblem(error, path)
  }
}

async function putFile(fence: Fence, path: string, target: string, signal?: AbortSignal): Promise<Kept> {
  const name = unfinished + randomUUID()
  const { folder, handle } = await withFileErrors(target, () => create(fence, dirname(target), name))
  await using _folder = folder
  const hidden = join(folder.here, name)
  try {
    const hash = createHash('sha256')
    let size = 0
    try {
      for await (const chunk of chunksOf(path, stepBytes, signal)) {
        hash.update(chunk)
        size += chunk.length
        await withFileErrors(target, () => handle.writeFile(chunk))
      }
      await withFileErrors(target, () => handle.sync())
    } finally {
      await handle.close()
    }
    signal?.throwIfAborted()
    await withFileErrors(target, () => rename(hidden, join(folder.here, basename(target))))
    await withFileErrors(target, () => flush(folder.here))
    return { size, sha256: hash.digest('hex') }
  } finally {
    await discard(hidden)
  }
}

/**
 * Creates a hard link where the file system supports it, and copies otherwise. Two calls at once each use their own
 * temporary name and rename it to the same target. If the target already is a link to the same file, the rename does
 * nothing, so the temporary name is always removed.
 */
async function promote(fence: Fence, staged: string, target: string, kept: Kept): Promise<void> {
  await withFileErrors(target, () => fence.make(dirname(target)))
  try {
    await using from = await fence.enter(dirname(staged))
    await using to = await fence.enter(dirname(target))
    const spare = join(from.here, unfinished + randomUUID())
    try {
      await link(join(from.here, basename(staged)), spare)
      // A hard link to a symbolic link is a symbolic link, and would lead wherever its creator wants.
      if (!(await lstat(spare)).isFile()) throw new Problem('NAME_REFUSED', { name: staged, why: 'it is not a file' })
      await rename(spare, join(to.here, basename(target)))
      await flush(to.here)
    } finally {
      await discard(spare)
    }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') {
      if (!(await holds(fence, target, kept))) throw localProblem(error, staged)
    } else if (cannotLink.has(codeOf(error) ?? '')) await putFile(fence, staged, target)
    else throw localProblem(error, target)
  }
}

const cannotLink = new Set(['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'])

async function holds(fence: Fence, path: string, { size, sha256 }: Kept): Promise<boolean> {
  const facts = await withFileErrors(path, () => statWithin(fence, path).catch(absent))
  if (!facts?.isFile() || Number(facts.size) !== size) return false
  const hash = createHash('sha256')
  await pipeline(await openFile(fence, path), hash)
  return hash.digest('hex') === sha256
}

/** Errors are ignored: listings hide the file, and the original error matters more. */
async function discard(hidden: string): Promise<void> {
  await rm(hidden, { force: true }).catch(() => {})
}

/** `prune` may remove the empty folder while it is created, until it holds the file. Then it is created again. */
async function create(fence: Fence, folder: string, name: string, triesLeft = 50): Promise<Created> {
  let held: HeldFolder | undefined
  try {
    await fence.make(folder)
    held = await fence.enter(folder)
    return { folder: held, handle: await open(join(held.here, name), 'wx') }
  } catch (error) {
    await held?.[Symbol.asyncDispose]()
    // Node reports a folder that disappears during creation as ENOTDIR.
    const isGone = codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR'
    if (!isGone || triesLeft === 0) throw error
    return create(fence, folder, name, triesLeft - 1)
  }
}

interface Created {
  readonly folder: HeldFolder
  readonly handle: FileHandle
}

/** Removes upload folders with their last file. A folder that is used again is not empty, or is created again. */
async function prune(folder: string): Promise<void> {
  for (let at = folder; isHidden(`${at.slice(1)}/`); at = dirname(at)) {
    try {
      await rmdir(at)
    } catch {
      return
    }
  }
}

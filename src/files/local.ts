/**
 * `file://`: folders of this machine, or of a file system that several machines share. A file is written under another
 * name beside its own, flushed to the disk, and renamed: whoever looks sees the old one or the new one, also after a
 * crash. A symbolic link is never written through: it is replaced. What a writer that was killed leaves behind, listings do not show.
 */
import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { constants, link, mkdir, open, rename, rm, rmdir, stat, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Problem } from '../kernel/problem.ts'
import type { FileStore, Kept } from './file-store.ts'
import { listLocal, versionOf } from './local-list.ts'
import { codeOf, localProblem, told } from './local-problem.ts'
import { checkLocalPath, isHidden, unfinished } from './names.ts'
import { chunksOf, stepBytes } from './read-file.ts'
import { checkFolder, parseUri, placeOfFile } from './uri.ts'

export function openLocalFiles(): FileStore {
  return {
    async *list(folder, ask = {}) {
      yield* listLocal(parseUri(checkFolder(folder)).path, ask)
    },
    open: async (uri, signal) => openFile(fileOf(uri), signal),
    put: async (path, uri, signal) => putFile(path, fileOf(uri), signal),
    promote: async (staged, uri, kept) => promote(fileOf(staged), fileOf(uri), kept),
    async stat(uri) {
      const path = fileOf(uri)
      const facts = await told(path, () => stat(path, { bigint: true }).catch(absent))
      return facts?.isFile() ? { size: Number(facts.size), version: versionOf(facts) } : undefined
    },
    async remove(uris) {
      for (const path of uris.map(fileOf)) {
        await told(path, () => unlink(path).catch(absent))
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

/** Nothing there, or a file where a folder of its path would be: it is not there. */
function absent(error: unknown): undefined {
  if (codeOf(error) !== 'ENOENT' && codeOf(error) !== 'ENOTDIR') throw error
}

async function openFile(path: string, signal?: AbortSignal): Promise<Readable> {
  signal?.throwIfAborted()
  const handle = await told(path, () => open(path, constants.O_RDONLY | constants.O_NONBLOCK))
  try {
    if (!(await handle.stat()).isFile()) throw new Problem('NAME_REFUSED', { name: path, why: 'it is not a file' })
  } catch (error) {
    await handle.close()
    throw localProblem(error, path)
  }
  const stream = handle.createReadStream({ highWaterMark: 1 << 18, ...(signal && { signal }) })
  return Readable.from(inOurWords(stream, path), { objectMode: false }).once('close', () => stream.destroy())
}

async function* inOurWords(stream: Readable, path: string): AsyncGenerator<Buffer> {
  try {
    yield* stream
  } catch (error) {
    throw localProblem(error, path)
  }
}

async function putFile(path: string, target: string, signal?: AbortSignal): Promise<Kept> {
  const hidden = besides(target)
  try {
    const handle = await told(target, () => create(hidden))
    const hash = createHash('sha256')
    let size = 0
    try {
      for await (const chunk of chunksOf(path, stepBytes, signal)) {
        hash.update(chunk)
        size += chunk.length
        await told(target, () => handle.writeFile(chunk))
      }
      await told(target, () => handle.sync())
    } finally {
      await handle.close()
    }
    signal?.throwIfAborted()
    await told(target, () => rename(hidden, target))
    await told(target, () => flush(dirname(target)))
    return { size, sha256: hash.digest('hex') }
  } finally {
    await discard(hidden)
  }
}

/**
 * By a second name for the same bytes where the file system knows that, else by a copy. Two at once each have a name of
 * their own and rename it over the same target. Where the target already is a name of these bytes, a rename does
 * nothing at all, so the spare name is removed in any case.
 */
async function promote(staged: string, target: string, kept: Kept): Promise<void> {
  const spare = besides(staged)
  await told(target, () => makeFolder(dirname(target)))
  try {
    await link(staged, spare)
    await rename(spare, target)
    await flush(dirname(target))
  } catch (error) {
    if (codeOf(error) === 'ENOENT') {
      if (!(await holds(target, kept))) throw localProblem(error, staged)
    } else if (cannotLink.has(codeOf(error) ?? '')) await putFile(staged, target)
    else throw localProblem(error, target)
  } finally {
    await discard(spare)
  }
}

const cannotLink = new Set(['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'])

async function holds(path: string, { size, sha256 }: Kept): Promise<boolean> {
  const facts = await told(path, () => stat(path).catch(absent))
  if (!facts?.isFile() || facts.size !== size) return false
  const hash = createHash('sha256')
  await told(path, () => pipeline(createReadStream(path), hash))
  return hash.digest('hex') === sha256
}

function besides(path: string): string {
  return join(dirname(path), unfinished + randomUUID())
}

/** Listings do not show it in any case; and why there is none is what counts. */
async function discard(hidden: string): Promise<void> {
  await rm(hidden, { force: true }).catch(() => {})
}

/** The folder may be removed as empty, by `prune`, while it is made and until the file is in it: then it is made again. */
async function create(path: string, triesLeft = 50): ReturnType<typeof open> {
  try {
    await makeFolder(dirname(path))
    return await open(path, 'wx')
  } catch (error) {
    // Node tells a folder that went while it was made as one that is none.
    const isGone = codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR'
    if (!isGone || triesLeft === 0) throw error
    return create(path, triesLeft - 1)
  }
}

/** A file is safe only when every new folder on the way to it is. */
async function makeFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true })
  if (first === undefined) return
  for (let at = folder; at.length >= first.length; at = dirname(at)) await flush(dirname(at))
}

async function flush(folder: string): Promise<void> {
  const handle = await open(folder)
  await handle.sync().finally(() => handle.close())
}

/** Folders of uploads go with their last file. One that somebody uses again is not empty, or is made again. */
async function prune(folder: string): Promise<void> {
  for (let at = folder; isHidden(`${at.slice(1)}/`); at = dirname(at)) {
    try {
      await rmdir(at)
    } catch {
      return
    }
  }
}

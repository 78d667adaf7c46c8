/** Folders on this machine: confines access to some of them, and lists them. */
import type { BigIntStats, Dirent } from 'node:fs'
import { constants, type FileHandle, lstat, mkdir, open, readdir, readlink, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Problem } from '../kernel/problem.ts'
import type { Entry, ListAsk } from './file-store.ts'
import { codeOf, withFileErrors } from './local-file.ts'
import { byBytes, isHidden, nameOf } from './uri.ts'

/** An open folder. `here` leads to it, whatever its original path leads to by now. */
export interface HeldFolder extends AsyncDisposable {
  readonly here: string
}

export interface Fence {
  /** Rejects a file or folder that is outside. */
  check(handle: FileHandle, path: string): Promise<void>
  enter(folder: string): Promise<HeldFolder>
  /** Creates a folder and its missing parents. */
  make(folder: string): Promise<void>
}

/**
 * Confines `file://` to some folders, symbolic links included. Whether a path is inside is decided by what was opened
 * and not by the path, because somebody may put a link there between the check and the use. On Linux, the kernel tells
 * where an open file really is, and a folder is used through its open handle. Other systems offer neither: there the
 * path is resolved a second time, and a fast attacker could redirect it in between.
 *
 * `roots`: undefined allows every folder.
 */
export function makeFence(roots: readonly string[] | undefined): Fence {
  if (roots === undefined) return { check: async () => {}, enter: async folder => asItIs(folder), make: makeFolder }

  const fence: Fence = {
    async check(handle, path) {
      const real = await realPathOf(handle, path)
      const places = await Promise.all(roots.map(root => realpath(root).catch(() => root)))
      const isInside = places.some(root => `${real}/`.startsWith(root.endsWith('/') ? root : `${root}/`))
      if (!isInside) throw new Problem('FILES_OUTSIDE', { name: path, roots })
    },
    async enter(folder) {
      const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY)
      try {
        await fence.check(handle, folder)
      } catch (error) {
        await handle.close()
        throw error
      }
      return { here: isLinux ? pathOf(handle) : folder, [Symbol.asyncDispose]: () => handle.close() }
    },
    async make(folder) {
      try {
        await (await fence.enter(folder))[Symbol.asyncDispose]()
      } catch (error) {
        if (codeOf(error) !== 'ENOENT' || dirname(folder) === folder) throw error
        await fence.make(dirname(folder))
        await using above = await fence.enter(dirname(folder))
        await mkdir(join(above.here, basename(folder))).catch(error => {
          if (codeOf(error) !== 'EEXIST') throw error
        })
        await flush(above.here)
        await (await fence.enter(folder))[Symbol.asyncDispose]()
      }
    },
  }
  return fence
}

const isLinux = process.platform === 'linux'

const pathOf = ({ fd }: FileHandle) => `/proc/self/fd/${fd}`

const asItIs = (folder: string): HeldFolder => ({ here: folder, [Symbol.asyncDispose]: async () => {} })

function realPathOf(handle: FileHandle, path: string): Promise<string> {
  return isLinux ? readlink(pathOf(handle)) : realpath(path)
}

/** A file is durable only if every new parent folder is. */
async function makeFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true })
  if (first === undefined) return
  for (let at = folder; at.length >= first.length; at = dirname(at)) await flush(dirname(at))
}

/** A new file survives a crash only if its folder was flushed too. */
export async function flush(folder: string): Promise<void> {
  await using handle = await open(folder)
  await handle.sync()
}

interface Walk {
  readonly root: string
  /** The real path of the folder, ending in `/`. */
  readonly real: string
  readonly deep: boolean
  readonly after: string
  readonly showsHidden: boolean
  readonly fence: Fence
}

const pageSize = 500

/**
 * Lists a folder. A symbolic link to a file inside the listed folder is listed as that file. A link that
 * leads outside, nowhere, or to a folder is rejected by its name. So a listing never leaves its folder and always ends.
 * Each folder is sorted in memory, so the names of one folder (not of those below it) must fit.
 *
 * `path`: the folder, relative to the root of the file system, ending in `/`.
 */
export async function* listLocal(
  path: string,
  { after = '', deep = false }: ListAsk,
  fence: Fence,
): AsyncGenerator<Entry[]> {
  const root = `/${path}`
  const real = await withFileErrors(root, () => realpath(root).catch(error => noFolder(error, root)))
  const walk = { root, real: real === '/' ? real : `${real}/`, deep, after, showsHidden: isHidden(path), fence }
  yield* walkFolder(walk, '')
}

async function* walkFolder(walk: Walk, folder: string): AsyncGenerator<Entry[]> {
  const found = await withFileErrors(walk.root + folder, () => readFolder(walk, folder))
  const waiting = found.filter(({ path }) => isAhead(walk, path)).sort((one, other) => byBytes(one.path, other.path))
  for (let at = 0; at < waiting.length; at += pageSize) {
    const slice = waiting.slice(at, at + pageSize)
    const entries = (await Promise.all(slice.map(({ path, kind }) => entryOf(walk, path, kind)))).filter(isThere)
    yield* walk.deep ? deepPages(walk, entries) : [entries]
  }
}

/** Groups consecutive files into pages, and descends into folders in between. */
async function* deepPages(walk: Walk, entries: readonly Entry[]): AsyncGenerator<Entry[]> {
  let page: Entry[] = []
  for (const entry of entries) {
    if (!entry.path.endsWith('/')) page.push(entry)
    else {
      if (page.length > 0) yield page
      page = []
      yield* walkFolder(walk, entry.path)
    }
  }
  if (page.length > 0) yield page
}

/** A folder that is removed during the listing counts as empty. */
async function readFolder(walk: Walk, folder: string): Promise<{ path: string; kind: Kind }[]> {
  const options = { encoding: 'buffer', withFileTypes: true } as const
  const read = async () => {
    await using held = await walk.fence.enter(walk.root + folder)
    return await readdir(held.here, options)
  }
  const entries = await read().catch(error => {
    if (folder !== '' && codeOf(error) === 'ENOENT') return []
    return noFolder(error, walk.root + folder)
  })
  return entries
    .map(entry => ({ name: folder + nameOf(entry.name), kind: kindOf(entry) }))
    .map(({ name, kind }) => ({ path: kind === 'folder' ? `${name}/` : name, kind }))
    .filter(({ path }) => walk.showsHidden || !isHidden(path))
}

function noFolder(error: unknown, name: string): never {
  if (codeOf(error) !== 'ENOTDIR') throw error
  throw new Problem('FILE_NOT_FOUND', { name, why: 'it is a file, not a folder' }, error)
}

type Kind = 'file' | 'folder' | 'link' | 'other'

function kindOf(entry: Dirent<Buffer> | BigIntStats): Kind {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'folder'
  return entry.isSymbolicLink() ? 'link' : 'other'
}

function isAhead({ after, deep }: Walk, path: string): boolean {
  return byBytes(path, after) > 0 || (deep && path.endsWith('/') && after.startsWith(path))
}

/** Returns nothing for an entry that was removed after the folder was read. */
async function entryOf(walk: Walk, path: string, kind: Kind): Promise<Entry | undefined> {
  if (kind === 'folder') return { path }
  try {
    const here = join(walk.root, path)
    const facts = await (kind === 'link' ? linkedFile(walk, path) : lstat(here, { bigint: true }))
    if (facts.isFile()) return { path, size: Number(facts.size), version: versionOf(facts) }
  } catch (error) {
    if (kind !== 'link' && codeOf(error) === 'ENOENT') return undefined
    throw error
  }
  throw new Problem('NAME_REFUSED', { name: path, why: 'it is neither a file nor a folder' })
}

async function linkedFile({ root, real }: Walk, path: string): Promise<BigIntStats> {
  const refuse = (why: string, cause?: unknown): never => {
    throw new Problem('NAME_REFUSED', { name: path, why: `it is a symbolic link ${why}` }, cause)
  }
  const target = await realpath(join(root, path)).catch(error => refuse('to a missing file', error))
  if (!`${target}/`.startsWith(real)) return refuse('to a file outside the folder')
  const facts = await stat(target, { bigint: true })
  return facts.isDirectory() ? refuse('to a folder') : facts
}

/** Based on size, modification time and inode, so that the content need not be read. */
export function versionOf({ size, mtimeNs, ino }: BigIntStats): string {
  return [size, mtimeNs, ino].map(part => part.toString(36)).join('-')
}

function isThere(entry: Entry | undefined): entry is Entry {
  return entry !== undefined
}

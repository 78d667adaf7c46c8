/**
 * Lists folders on this machine. A symbolic link to a file inside the listed folder is listed as that file. A link that
 * leads outside, nowhere, or to a folder is rejected by its name. So a listing never leaves its folder and always ends.
 * Each folder is sorted in memory, so the names of one folder (not of those below it) must fit.
 */
import type { BigIntStats, Dirent } from 'node:fs'
import { lstat, readdir, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Problem } from '../kernel/problem.ts'
import type { Fence } from './fence.ts'
import type { Entry, ListAsk } from './file-store.ts'
import { codeOf, withFileErrors } from './local-problem.ts'
import { byBytes, isHidden, nameOf } from './names.ts'

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

/** `path`: the folder, relative to the root of the file system, ending in `/`. */
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

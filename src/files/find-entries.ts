/**
 * Finds the entries that a glob matches, in byte order of their paths. It lists only folders that can contain matches.
 */
import { Problem } from '../kernel/problem.ts'
import type { Entry, FileStore, ListAsk } from './file-store.ts'
import type { Glob } from './glob.ts'
import { byBytes } from './names.ts'
import { joinUri } from './uri.ts'

/** Where to begin: at a path, or right after it. */
export interface Start {
  readonly path: string
  readonly inclusive: boolean
}

interface Folder {
  readonly base: string
  readonly list: FileStore['list']
}

export async function* findEntries(glob: Glob, folder: Folder, start: Start | undefined): AsyncGenerator<Entry> {
  if (glob.levels.length > 0 || glob.rest !== undefined) yield* find(glob, folder, '', 0, start)
  else if (start === undefined || start.inclusive) yield { path: '' }
}

/** `start` is relative to the folder at `path`. */
async function* find(
  glob: Glob,
  folder: Folder,
  path: string,
  depth: number,
  start: Start | undefined,
): AsyncGenerator<Entry> {
  const { levels, rest } = glob
  const level = levels[depth]
  const matches =
    level === undefined ? rest : depth === levels.length - 1 && rest === undefined && byName(level.matches)
  if (matches) {
    const ask = { deep: level === undefined, ...asking(start) }
    for await (const entry of entriesIn(folder, path, ask)) {
      if (isAhead(entry.path, start) && matches(entry.path)) yield { ...entry, path: path + entry.path }
    }
    return
  }
  const inside = (name: string, from?: Start) => find(glob, folder, path + name, depth + 1, from)
  const head = start?.path.slice(0, start.path.indexOf('/') + 1) ?? ''
  const name = head.slice(0, -1)
  if (start !== undefined && head !== '' && level?.matches(name)) {
    // The folder in which the last run stopped comes first, from where it stopped.
    const left = start.path.slice(head.length)
    yield* inside(head, left === '' ? undefined : { ...start, path: left })
  }
  if (level?.only !== undefined) {
    const only = `${level.only}/`
    if (start === undefined || byBytes(only, head || start.path) > 0) yield* inside(only)
    return
  }
  const after = head || start?.path
  for await (const entry of entriesIn(folder, path, after ? { after } : {})) {
    if (entry.path.endsWith('/') && byName(level!.matches)(entry.path)) yield* inside(entry.path)
  }
}

function byName(matches: (name: string) => boolean): (path: string) => boolean {
  return path => matches(path.endsWith('/') ? path.slice(0, -1) : path)
}

function isAhead(path: string, start: Start | undefined): boolean {
  if (start === undefined) return true
  const order = byBytes(path, start.path)
  return order > 0 || (order === 0 && start.inclusive)
}

/** To include the path itself, the listing begins one character before its end. Earlier entries are skipped. */
function asking(start: Start | undefined): ListAsk {
  if (start === undefined) return {}
  const after = start.inclusive ? [...start.path].slice(0, -1).join('') : start.path
  return after === '' ? {} : { after }
}

/**
 * A subfolder that is missing, or has disappeared since it was listed, is empty. But if the base folder is gone too (an
 * unmounted disk, a deleted bucket), this must not be taken for the end of the listing.
 */
async function* entriesIn({ base, list }: Folder, path: string, ask: ListAsk): AsyncGenerator<Entry> {
  try {
    for await (const page of list(joinUri(base, path), ask)) yield* page
  } catch (error) {
    if (path === '' || !(error instanceof Problem) || error.code !== 'FILE_NOT_FOUND') throw error
    for await (const _page of list(base)) break
  }
}

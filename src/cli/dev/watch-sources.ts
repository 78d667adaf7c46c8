/** Watches the source files of a project, without node_modules, hidden folders and the folder of the store. */
import { type FSWatcher, readdirSync, watch } from 'node:fs'
import { join, relative } from 'node:path'
import { isSource } from '../task-modules.ts'

export interface Watching {
  close(): void
}

export interface WatchOptions {
  /** Folders that are not watched, besides node_modules and hidden ones. */
  readonly except: readonly string[]
  /** Called with the changed files, relative to the folder, once they have been quiet for a moment. */
  onChange(files: readonly string[]): void
  /** The system refused, for example because too many files are watched already. */
  onError(error: Error): void
}

/** An editor may write a file in several steps. */
const quietMs = 100

export function watchSources(folder: string, { except, onChange, onError }: WatchOptions): Watching {
  const watchers = new Map<string, FSWatcher>()
  const changed = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  const report = () => {
    const files = [...changed].sort()
    changed.clear()
    onChange(files)
  }
  const note = (path: string) => {
    changed.add(relative(folder, path))
    clearTimeout(timer)
    timer = setTimeout(report, quietMs)
  }
  const isWatched = (name: string, path: string) =>
    name !== 'node_modules' && !name.startsWith('.') && !except.includes(path)

  /** `isNew`: the files in it appeared together with the folder. */
  const add = (path: string, isNew: boolean) => {
    if (watchers.has(path)) return
    try {
      const watcher = watch(path, (_event, name) => name !== null && check(path, name))
      watcher.on('error', () => remove(path))
      watchers.set(path, watcher)
      for (const entry of readdirSync(path, { withFileTypes: true })) {
        const inner = join(path, entry.name)
        if (entry.isDirectory()) {
          if (isWatched(entry.name, inner)) add(inner, isNew)
        } else if (isNew && isSource(entry.name)) note(inner)
      }
    } catch (error) {
      remove(path)
      if (!['ENOENT', 'ENOTDIR', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? ''))
        onError(error as Error)
    }
  }
  const remove = (path: string) => {
    watchers.get(path)?.close()
    watchers.delete(path)
  }
  const check = (parent: string, name: string) => {
    const path = join(parent, name)
    if (isSource(name)) return note(path)
    // A folder that was removed or renamed and made again needs a new watcher.
    if (isWatched(name, path) && isFolder(path)) {
      remove(path)
      add(path, true)
    }
  }
  add(folder, false)
  return {
    close() {
      clearTimeout(timer)
      for (const path of [...watchers.keys()]) remove(path)
    },
  }
}

function isFolder(path: string): boolean {
  try {
    readdirSync(path)
    return true
  } catch {
    return false
  }
}

/** Watches the source files of a project, without node_modules, hidden folders and the folder of the store. */
import { type FSWatcher, readdirSync, watch } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { isSource } from '../task-modules.ts'

export interface Watching {
  close(): void
}

export interface WatchOptions {
  /** Folders that are not watched, besides node_modules and hidden ones. */
  readonly except: readonly string[]
  /** Called with the changed files, relative to the folder, once they have been quiet for a moment. */
  onChange(files: readonly string[]): void
  /** The system refused, for example because too many files are watched already. Called once for each reason. */
  onError(error: Error): void
}

/** An editor may write a file in several steps. */
const quietMs = 100

export function watchSources(folder: string, { except, onChange, onError }: WatchOptions): Watching {
  const watchers = new Map<string, FSWatcher>()
  const changed = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  const refusals = new Set<string | undefined>()
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
      const watcher = watch(path, (_event, name) => name !== null && inspect(path, name))
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
      const { code } = error as NodeJS.ErrnoException
      if (['ENOENT', 'ENOTDIR', 'EACCES'].includes(code ?? '') || refusals.has(code)) return
      // Once a limit is reached, every other folder meets it too.
      refusals.add(code)
      onError(error as Error)
    }
  }
  /** With the folders in it, whose watchers follow them to wherever they were moved. */
  const remove = (path: string) => {
    for (const [watched, watcher] of watchers) {
      if (watched !== path && !watched.startsWith(path + sep)) continue
      watcher.close()
      watchers.delete(watched)
    }
  }
  const inspect = (parent: string, name: string) => {
    const path = join(parent, name)
    if (isSource(name)) return note(path)
    // A folder that was removed or renamed and made again needs a new watcher.
    if (!isWatched(name, path)) return
    remove(path)
    if (isFolder(path)) add(path, true)
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

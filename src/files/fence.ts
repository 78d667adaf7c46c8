/**
 * Confines `file://` to some folders, symbolic links included. Whether a path is inside is decided by what was opened
 * and not by the path, because somebody may put a link there between the check and the use. On Linux, the kernel tells
 * where an open file really is, and a folder is used through its open handle. Other systems offer neither: there the
 * path is resolved a second time, and a fast attacker could redirect it in between.
 */
import { constants, type FileHandle, mkdir, open, readlink, realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { Problem } from '../kernel/problem.ts'
import { codeOf } from './local-problem.ts'

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

/** `roots`: undefined allows every folder. `makeFolder`: creates a folder when all are allowed. */
export function makeFence(roots: readonly string[] | undefined, makeFolder: (folder: string) => Promise<void>): Fence {
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
        await mkdir(join(above.here, basename(folder))).catch(ignoring('EEXIST'))
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

function ignoring(code: string) {
  return (error: unknown): void => {
    if (codeOf(error) !== code) throw error
  }
}

/** A new file survives a crash only if its folder was flushed too. */
export async function flush(folder: string): Promise<void> {
  const handle = await open(folder)
  await handle.sync().finally(() => handle.close())
}

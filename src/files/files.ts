/** Files wherever they lie: a URI's scheme says which store is asked. */
import { Problem } from '../kernel/problem.ts'
import type { FileStore } from './file-store.ts'
import { openLocalFiles } from './local.ts'
import { checkS3Options, type S3Options } from './s3-options.ts'
import { parseUri } from './uri.ts'

export interface FilesOptions {
  readonly s3?: S3Options
}

export function openFiles({ s3 = {} }: FilesOptions = {}): FileStore {
  checkS3Options(s3)
  const local = openLocalFiles()
  let remote: Promise<FileStore> | undefined
  /** Loaded when first wanted: the client of S3 is large. */
  const openS3 = async () => (await import('./s3.ts')).openS3Files(s3)
  const storeOf = (uri: string): FileStore | Promise<FileStore> => {
    if (parseUri(uri).scheme === 'file') return local
    remote ??= openS3()
    return remote
  }

  return {
    async *list(folder, ask) {
      try {
        yield* (await storeOf(folder)).list(folder, ask)
      } catch (error) {
        throw refusedIn(folder, error)
      }
    },
    open: async (uri, signal) => (await storeOf(uri)).open(uri, signal),
    put: async (path, uri, signal) => (await storeOf(uri)).put(path, uri, signal),
    async promote(staged, uri, kept) {
      const store = await storeOf(uri)
      if ((await storeOf(staged)) !== store)
        throw new Problem('URI_INVALID', { uri, why: `what is to be put there lies elsewhere: ${staged}` })
      await store.promote(staged, uri, kept)
    },
    stat: async uri => (await storeOf(uri)).stat(uri),
    async remove(uris) {
      const isLocal = (uri: string) => parseUri(uri).scheme === 'file'
      const [here, there] = [uris.filter(isLocal), uris.filter(uri => !isLocal(uri))]
      await local.remove(here)
      if (there[0] !== undefined) await (await storeOf(there[0])).remove(there)
    },
    async close() {
      await (await remote)?.close()
    },
  }
}

/** A name that is refused is one in that folder: alone it might be anywhere. */
function refusedIn(folder: string, error: unknown): unknown {
  if (!(error instanceof Problem) || error.code !== 'NAME_REFUSED' || 'folder' in error.details) return error
  return new Problem('NAME_REFUSED', { ...error.details, folder }, error)
}

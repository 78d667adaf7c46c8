/** Selects the file store by the scheme of the URI. */
import { Problem } from '../kernel/problem.ts'
import { checkS3Options, type FileStore, type S3Options } from './file-store.ts'
import { openLocalFiles } from './local.ts'
import { parseUri } from './uri.ts'

export interface FilesOptions {
  readonly s3?: S3Options
  /** Local folders that jobs are confined to, symbolic links included. Default: any. */
  readonly roots?: readonly string[]
  /** Buckets that may be used; `*`: all. Default: all. */
  readonly buckets?: readonly string[]
}

export function openFiles({ s3 = {}, roots, buckets }: FilesOptions = {}): FileStore {
  checkS3Options(s3)
  const local = openLocalFiles(roots)
  let remote: Promise<FileStore> | undefined
  /** Loaded on first use, because the S3 client is large. */
  const openS3 = async () => (await import('./s3.ts')).openS3Files(s3)
  const storeOf = (uri: string): FileStore | Promise<FileStore> => {
    if (parseUri(uri).scheme === 'file') return local
    checkBucket(buckets, uri)
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
        throw new Problem('URI_INVALID', { uri, why: `the staged file is in another store: ${staged}` })
      await store.promote(staged, uri, kept)
    },
    stat: async uri => (await storeOf(uri)).stat(uri),
    async remove(uris) {
      const isLocal = (uri: string) => parseUri(uri).scheme === 'file'
      const [here, there] = [uris.filter(isLocal), uris.filter(uri => !isLocal(uri))]
      for (const uri of there) checkBucket(buckets, uri)
      await local.remove(here)
      if (there[0] !== undefined) await (await storeOf(there[0])).remove(there)
    },
    async close() {
      await (await remote)?.close()
    },
  }
}

/** Rejects a bucket that is not listed. `at`: the place in the spec that names it. */
export function checkBucket(buckets: readonly string[] | undefined, uri: string, at?: string): void {
  const isListed = buckets === undefined || buckets.includes('*') || buckets.includes(parseUri(uri).bucket)
  if (!isListed) throw new Problem('FILES_OUTSIDE', { ...(at !== undefined && { at }), uri, buckets })
}

/** Adds the folder, because a rejected name alone could be anywhere. */
function refusedIn(folder: string, error: unknown): unknown {
  if (!(error instanceof Problem) || error.code !== 'NAME_REFUSED' || 'folder' in error.details) return error
  return new Problem('NAME_REFUSED', { ...error.details, folder }, error)
}

import type { FileStore } from '../../src/files/file-store.ts'
import { Problem } from '../../src/kernel/problem.ts'
import type { Losing, Loss } from './losing-sql.ts'

/** Counts every file operation, including each page of a listing, and loses one. From then on the process is dead. */
export function losingFiles(sound: FileStore, { n, of }: Loss): Pick<Losing, 'wasLost'> & { files: FileStore } {
  let count = 0
  const away = () => new Problem('FILES_UNAVAILABLE', { uri: 'file:///', why: `${of} ${n} was lost` })
  async function step<T>(run: () => Promise<T>): Promise<T> {
    if (++count !== n) return run()
    if (of === 'answer') await run()
    throw away()
  }
  const files: FileStore = {
    ...sound,
    async *list(folder, ask) {
      const pages = sound.list(folder, ask)[Symbol.asyncIterator]()
      for (;;) {
        const page = await step(() => pages.next())
        if (page.done) return
        yield page.value
      }
    },
    open: (uri, signal) => step(() => sound.open(uri, signal)),
    put: (path, uri, signal) => step(() => sound.put(path, uri, signal)),
    promote: (staged, uri, kept) => step(() => sound.promote(staged, uri, kept)),
    stat: uri => step(() => sound.stat(uri)),
    remove: uris => step(() => sound.remove(uris)),
  }
  return { files, wasLost: () => count >= n }
}

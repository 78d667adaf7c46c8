/** A file store in memory that accepts any name and can fail in any method. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Readable } from 'node:stream'
import type { FileStore } from '../../src/files/file-store.ts'

export interface Shelf extends FileStore {
  readonly kept: Map<string, Buffer>
  /** An error thrown here is thrown by the method of that name. */
  fault: (method: 'list' | 'open' | 'put', uri: string) => void
}

/** Files in `shelf://box/` by their unescaped paths, including paths that have no URI. */
export function shelf(files: Readonly<Record<string, string | Buffer>> = {}): Shelf {
  const kept = new Map(Object.entries(files).map(([path, bytes]) => [`shelf://box/${path}`, Buffer.from(bytes)]))
  const find = (uri: string) => kept.get(uri) ?? kept.get(decodeURIComponent(uri))
  const made: Shelf = {
    kept,
    fault: () => {},
    async *list(folder) {
      made.fault('list', folder)
      const inside = [...kept].filter(([uri]) => uri.startsWith(folder))
      yield inside.map(([uri, { length }]) => ({ path: uri.slice(folder.length), size: length, version: '1' }))
    },
    async open(uri) {
      made.fault('open', uri)
      const bytes = find(uri)
      if (bytes === undefined) throw new Error(`no file ${uri}`)
      return Readable.from([bytes])
    },
    async put(path, uri) {
      made.fault('put', uri)
      const bytes = await readFile(path)
      kept.set(uri, bytes)
      return { size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
    },
    async promote() {},
    async stat() {
      return undefined
    },
    async remove() {},
    async close() {},
  }
  return made
}

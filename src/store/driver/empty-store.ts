/**
 * An empty store, made ahead when Pawl was built: to unpack it takes a tenth of the time in which PGlite makes one. It is
 * for the PGlite that made it alone; with any other, PGlite makes its own.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync } from 'node:zlib'
import { lockFiles } from './folder-lock.ts'
import { assignIdentity } from './store-identity.ts'

const pglite = join(dirname(createRequire(import.meta.url).resolve('@electric-sql/pglite')), '..')

/** Compiled code lies in dist/store, tests run from elsewhere: both find what was built. */
const places = ['../..', '../../../../dist']

/**
 * Its name says which PGlite it is for.
 * @public scripts/make-empty-store.mjs imports it once it is compiled.
 */
export function emptyStoreName(): string {
  const { version } = JSON.parse(readFileSync(join(pglite, 'package.json'), 'utf8')) as { version: string }
  return `empty-store-${version}.tar.br`
}

/** As a tar, with an identity of its own. Undefined: none was made for this PGlite. */
export function readEmptyStore(): Buffer | undefined {
  const name = emptyStoreName()
  const files = places.map(place => fileURLToPath(new URL(`${place}/${name}`, import.meta.url)))
  const file = files.find(path => existsSync(path))
  if (file === undefined) return undefined
  const tar = brotliDecompressSync(readFileSync(file))
  assignIdentity([...filesOf(tar)])
  return tar
}

const version = 'PG_VERSION'
const mark = 'being-made'

/**
 * Lays an empty store into a folder that is missing or empty. The file by which PGlite knows a store comes last, and has
 * another name until then: whoever is killed on the way leaves a folder that the next one fills anew.
 */
export function unpackStore(folder: string): void {
  const ours: readonly string[] = Object.values(lockFiles)
  const found = existsSync(folder) ? readdirSync(folder).filter(name => !ours.includes(name)) : []
  if (found.length > 0 && !found.includes(mark)) return
  const tar = readEmptyStore()
  if (tar === undefined) return
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const write = (name: string, content: Uint8Array) => writeFileSync(join(folder, name), content, { mode: 0o600 })
  write(mark, Buffer.of())
  for (const { name, isFolder, content } of filesOf(tar)) {
    if (isFolder) mkdirSync(join(folder, name), { recursive: true, mode: 0o700 })
    else write(name === version ? mark : name, content)
  }
  renameSync(join(folder, mark), join(folder, version))
}

export interface Entry {
  readonly name: string
  readonly isFolder: boolean
  /** A part of the tar itself: whoever writes here changes it. */
  readonly content: Buffer
}

/** What lies in a tar: a header of 512 bytes for each, then its bytes, filled up to the next 512. */
function* filesOf(tar: Buffer): Generator<Entry> {
  const text = (from: number, length: number) => tar.toString('utf8', from, from + length).split('\0', 1)[0]!
  for (let at = 0; at < tar.length && tar[at] !== 0; ) {
    const size = Number.parseInt(text(at + 124, 12), 8)
    const begin = at + 512
    const name = text(at, 100).replace(/^\/+/, '')
    yield { name, isFolder: text(at + 156, 1) === '5', content: tar.subarray(begin, begin + size) }
    at = begin + Math.ceil(size / 512) * 512
  }
}

/**
 * An empty store that was created when Pawl was built. Unpacking it takes a tenth of the time that PGlite needs to
 * create one. It is used only with the version of PGlite that created it; any other version creates its own.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync } from 'node:zlib'
import { Problem } from '../../kernel/problem.ts'
import { lockFiles } from './folder-lock.ts'

const pglite = join(dirname(createRequire(import.meta.url).resolve('@electric-sql/pglite')), '..')

/** Compiled code is in dist/store, and tests run from elsewhere. Both find what was built. */
const distFolders = ['../..', '../../../../dist']

/**
 * The file name contains the version of PGlite that created the store.
 * @public scripts/make-empty-store.mjs imports it once it is compiled.
 */
export function emptyStoreName(): string {
  const { version } = JSON.parse(readFileSync(join(pglite, 'package.json'), 'utf8')) as { version: string }
  return `empty-store-${version}.tar.br`
}

/** The tar with an identity of its own, or undefined if none was built for this version of PGlite. */
export function readEmptyStore(): Buffer | undefined {
  const name = emptyStoreName()
  const files = distFolders.map(folder => fileURLToPath(new URL(`${folder}/${name}`, import.meta.url)))
  const file = files.find(path => existsSync(path))
  if (file === undefined) return undefined
  const tar = brotliDecompressSync(readFileSync(file))
  assignIdentity([...filesOf(tar)])
  return tar
}

const version = 'PG_VERSION'
const unfinishedMark = 'being-made'

/**
 * Unpacks an empty store into a folder that is missing or empty. PGlite recognizes a store by one file, which has
 * another name until everything else is written: if the process is killed before that, the next one fills the folder
 * again.
 */
export function unpackStore(folder: string): void {
  const lockNames: readonly string[] = Object.values(lockFiles)
  const found = existsSync(folder) ? readdirSync(folder).filter(name => !lockNames.includes(name)) : []
  if (found.length > 0 && !found.includes(unfinishedMark)) return
  const tar = readEmptyStore()
  if (tar === undefined) return
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const write = (name: string, content: Uint8Array) => writeFileSync(join(folder, name), content, { mode: 0o600 })
  write(unfinishedMark, Buffer.of())
  for (const { name, isFolder, content } of filesOf(tar)) {
    if (isFolder) mkdirSync(join(folder, name), { recursive: true, mode: 0o700 })
    else write(name === version ? unfinishedMark : name, content)
  }
  renameSync(join(folder, unfinishedMark), join(folder, version))
}

export interface Entry {
  readonly name: string
  readonly isFolder: boolean
  /** A view into the tar: writing to it changes the tar. */
  readonly content: Buffer
}

/** Lists the entries of a tar: a header of 512 bytes for each, then its content, padded to a multiple of 512. */
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

/**
 * Assigns a new system identifier. The feed uses it to notice that the store was moved to another system
 * (feed/generation.ts), and all copies of the empty store would otherwise share one. As in pg_resetwal, it is written
 * to the three places where PostgreSQL looks for it.
 */
const control = 'global/pg_control'

function assignIdentity(files: readonly { readonly name: string; readonly content: Buffer }[]): void {
  const controlFile = files.find(({ name }) => name === control)?.content
  const at = controlFile && checksumOffset(controlFile)
  if (controlFile === undefined || at === undefined)
    throw new Problem('STORE_UNAVAILABLE', { why: `no ${control} was found` })
  const old = Buffer.from(controlFile.subarray(0, 8))
  const identity = randomBytes(8)
  // The identifier is displayed as a signed number.
  identity[7]! &= 0x7f
  identity.copy(controlFile)
  controlFile.writeUInt32LE(crc32c(controlFile.subarray(0, at)), at)
  for (const { name, content } of files) {
    // The first page of each WAL segment contains the identifier.
    const offset = name.startsWith('pg_wal/') ? content.subarray(0, 64).indexOf(old) : -1
    if (offset >= 0) identity.copy(content, offset)
  }
}

/** The checksum follows the bytes that it covers. Their number depends on the version of PostgreSQL. */
function checksumOffset(controlFile: Buffer): number | undefined {
  for (let at = 8; at < 512; at += 4)
    if (crc32c(controlFile.subarray(0, at)) === controlFile.readUInt32LE(at)) return at
  return undefined
}

/** CRC-32C (Castagnoli), which PostgreSQL uses. Node offers only CRC-32. */
function crc32c(bytes: Buffer): number {
  let sum = 0xffffffff
  for (const byte of bytes) {
    sum ^= byte
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0x82f63b78 : 0)
  }
  return (sum ^ 0xffffffff) >>> 0
}

/**
 * Every PostgreSQL system has a number of its own, by which the feed knows that it was moved to another one
 * (store/schema/migrate.ts). Stores that come from the same empty one would share it: each is given another, in the three places
 * where PostgreSQL looks for it, as pg_resetwal does.
 */
import { randomBytes } from 'node:crypto'
import { Problem } from '../../kernel/problem.ts'

const control = 'global/pg_control'

export function assignIdentity(files: readonly { readonly name: string; readonly content: Buffer }[]): void {
  const book = files.find(({ name }) => name === control)?.content
  const at = book && checksumPlace(book)
  if (book === undefined || at === undefined) throw new Problem('STORE_UNAVAILABLE', { why: `no ${control} was found` })
  const old = Buffer.from(book.subarray(0, 8))
  const identity = randomBytes(8)
  // It is shown as a number with a sign.
  identity[7]! &= 0x7f
  identity.copy(book)
  book.writeUInt32LE(crc32c(book.subarray(0, at)), at)
  for (const { name, content } of files) {
    // The first page of each segment of the log says whose it is.
    const place = name.startsWith('pg_wal/') ? content.subarray(0, 64).indexOf(old) : -1
    if (place >= 0) identity.copy(content, place)
  }
}

/** The checksum stands behind what it sums up; how much that is depends on the version. */
function checksumPlace(book: Buffer): number | undefined {
  for (let at = 8; at < 512; at += 4) if (crc32c(book.subarray(0, at)) === book.readUInt32LE(at)) return at
  return undefined
}

/** The sum of Castagnoli, which PostgreSQL uses; Node has only the other one. */
function crc32c(bytes: Buffer): number {
  let sum = 0xffffffff
  for (const byte of bytes) {
    sum ^= byte
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0x82f63b78 : 0)
  }
  return (sum ^ 0xffffffff) >>> 0
}

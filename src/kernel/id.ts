let lastMs = 0
let counter = 0
const pool = new Uint32Array(1024)
let used = pool.length

/**
 * A UUIDv7. It increases with time, and strictly within this process, so that rows queued together are stored together.
 * 48 bits of milliseconds, a 26-bit counter where the RFC leaves room for one, and random bits.
 */
export function newId(): string {
  const now = Date.now()
  if (now > lastMs) {
    lastMs = now
    counter = Math.floor(Math.random() * 0x1000000)
  } else {
    counter += 1
  }
  if (used === pool.length) {
    crypto.getRandomValues(pool)
    used = 0
  }
  const time = lastMs.toString(16).padStart(12, '0')
  const high = (counter >>> 14).toString(16).padStart(3, '0')
  const low = (0x8000 | (counter & 0x3fff)).toString(16)
  const rest = hex(pool[used++]!) + hex(pool[used++]!).slice(0, 4)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${high}-${low}-${rest}`
}

/** A UUID of the version for custom ones (8), made from the hexadecimal digits of a hash. */
export function idOfHash(hash: string): string {
  const variant = ((Number.parseInt(hash[16]!, 16) & 0x3) | 0x8).toString(16)
  const middle = `${hash.slice(8, 12)}-8${hash.slice(13, 16)}-${variant}${hash.slice(17, 20)}`
  return `${hash.slice(0, 8)}-${middle}-${hash.slice(20, 32)}`
}

/** The lowest id of a moment, for ranges over ids that stand for ranges of time. */
export function firstIdAt(ms: number): string {
  const time = Math.max(0, Math.floor(ms)).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`
}

const hex = (word: number) => word.toString(16).padStart(8, '0')

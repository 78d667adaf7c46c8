import { createHash, randomInt } from 'node:crypto'

const letters = '0123456789abcdefghijklmnopqrstuvwxyz'
const tagLength = 10

/** The same UUID (version 8) for the same texts. */
export function idFrom(...texts: readonly string[]): string {
  const hex = digest(texts).toString('hex')
  const variant = ((Number.parseInt(hex[16]!, 16) & 0x3) | 0x8).toString(16)
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    variant + hex.slice(17, 20),
    hex.slice(20, 32),
  ].join('-')
}

/** Makes a name unique. A request that is repeated under its idempotency key gets the same tag. */
export function tagFor({ holder = '', idempotencyKey }: { holder?: string; idempotencyKey?: string }): string {
  const bytes = idempotencyKey === undefined ? undefined : digest([holder, idempotencyKey])
  const letter = (index: number) =>
    letters[bytes === undefined ? randomInt(letters.length) : bytes[index]! % letters.length]
  return Array.from({ length: tagLength }, (_, index) => letter(index)).join('')
}

const digest = (texts: readonly string[]) => createHash('sha256').update(JSON.stringify(texts)).digest()

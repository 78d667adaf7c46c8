/**
 * Bounds JSON text before it is parsed: megabytes of brackets would become gigabytes of objects.
 *
 * A request may hold many items, and one item that is nested too deep must not make the others fail. So the text is not
 * refused for its depth. Instead, everything below `mostLevels` is overwritten with a 0 and spaces while the text is read.
 * The rest of such an item is still deeper than the 100 levels that can be stored, so the checks of items refuse it.
 */
import { randomBytes } from 'node:crypto'

/** More than the 100 levels of a payload and those of the request around it. */
export const mostLevels = 150
/** A list or an object takes about 100 bytes. */
export const mostContainers = 1_000_000
export const mostValues = 5_000_000
export const mostMembers = 1_000_000
/**
 * Objects that have the same names in the same order are parsed quickly. A name in a new position of a sequence takes about
 * 20 times as long as a repeated one, so new sequences are counted separately.
 */
export const mostSequences = 100_000
/** A short text takes about 10 times as long on its first occurrence as on later ones. */
export const mostTexts = 400_000
/** V8 reuses texts of at most this many characters. */
const longestShortText = 10
const smallBytes = 2 ** 18

const [quote, backslash, comma, colon, zero, space] = [0x22, 0x5c, 0x2c, 0x3a, 0x30, 0x20]
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d]

export class JsonBounds {
  #bytes = 0
  #levels = 0
  #containers = 0
  #values = 1
  #members = 0
  #isInText = false
  #isEscaped = false
  #textLength = 0
  #textHash = 0
  /** For each level, a hash of the names of its object so far. */
  readonly #names = new Uint32Array(mostLevels + 2)
  readonly #sequences = new Different(mostSequences)
  readonly #texts = new Different(mostTexts)

  /**
   * Reads the next bytes of the text and overwrites values that are nested too deep. Returns the reason if the text must
   * be refused. Bytes suffice: in UTF-8, no part of a longer character looks like the ones that are searched for.
   */
  take(bytes: Uint8Array): string | undefined {
    this.#bytes += bytes.length
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]!
      const isBelow = this.#levels > mostLevels
      if (isBelow) bytes[at] = space
      if (this.#isInText) this.#takeText(byte)
      else if (byte === quote) this.#beginText()
      else if (byte === openList || byte === openObject) {
        this.#levels += 1
        if (this.#levels === mostLevels + 1) bytes[at] = zero
        else if (!isBelow) this.#containers += 1
        this.#names[this.#levels] = 0
      } else if (byte === closeList || byte === closeObject) this.#levels -= 1
      else if (byte === comma && !isBelow) this.#values += 1
      else if (byte === colon && !isBelow) this.#takeName()
    }
    return this.#fault()
  }

  #fault(): string | undefined {
    const values = this.#values + this.#containers
    if (this.#containers > mostContainers) return `it contains more than ${grouped(mostContainers)} lists and objects`
    if (this.#members > mostMembers) return `its objects have more than ${grouped(mostMembers)} members`
    if (this.#sequences.isExceeded)
      return `its objects have more than ${grouped(mostSequences)} different sequences of names`
    if (this.#texts.isExceeded) return `it contains more than ${grouped(mostTexts)} different short strings`
    return values > mostValues ? `it contains more than ${grouped(mostValues)} values` : undefined
  }

  #beginText(): void {
    this.#isInText = true
    this.#textLength = 0
    this.#textHash = 0
  }

  #takeText(byte: number): void {
    if (byte === quote && !this.#isEscaped) {
      this.#isInText = false
      if (this.#isLarge && this.#textLength <= longestShortText) this.#texts.count(this.#textHash)
      return
    }
    this.#isEscaped = byte === backslash && !this.#isEscaped
    if (!this.#isLarge) return
    this.#textLength += 1
    this.#textHash = mixed(this.#textHash, byte)
  }

  /** Up to here, distinct names need no counting: a small text cannot hold too many. */
  get #isLarge(): boolean {
    return this.#bytes > smallBytes
  }

  /** The text before a colon is the name of a member. */
  #takeName(): void {
    this.#members += 1
    if (!this.#isLarge) return
    const names = mixed(this.#names[this.#levels]!, this.#textHash)
    this.#names[this.#levels] = names
    this.#sequences.count(names)
  }
}

/** Counts distinct hashes approximately: it keeps one bit per hash, and two may share a bit. */
class Different {
  readonly #most: number
  #different = 0
  #seen: Uint8Array | undefined

  constructor(most: number) {
    this.#most = most
  }

  get isExceeded(): boolean {
    return this.#different > this.#most
  }

  count(hash: number): void {
    this.#seen ??= new Uint8Array(bits / 8)
    const bit = hash >>> (32 - bitsLog2)
    const [index, mask] = [bit >>> 3, 1 << (bit & 7)]
    if ((this.#seen[index]! & mask) !== 0) return
    this.#seen[index]! |= mask
    this.#different += 1
  }
}

const bitsLog2 = 22
const bits = 2 ** bitsLog2

/** A secret seed: without it, nobody can construct texts with equal hashes. */
const secret = randomBytes(4).readUInt32LE() | 1

function mixed(hash: number, value: number): number {
  const product = Math.imul(hash ^ value ^ 0x9e3779b9, secret)
  return Math.imul(product ^ (product >>> 15), 0x85ebca6b) ^ (product >>> 13)
}

const grouped = (count: number) => count.toLocaleString('en')

/** Parses untrusted JSON. Throws an error with the reason if it must be refused. */
export function parseBoundedJson(text: string): unknown {
  const bytes = new TextEncoder().encode(text)
  const fault = new JsonBounds().take(bytes)
  if (fault !== undefined) throw new Error(fault)
  return JSON.parse(new TextDecoder().decode(bytes))
}

/** Maximum length of a text that is parsed as YAML. */
export const longestYaml = 2 * 1024 * 1024

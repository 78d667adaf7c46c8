/**
 * Bounds JSON text before it is parsed: megabytes of brackets would become gigabytes of objects.
 *
 * A request may hold many items, and an item that is nested too deep must not cost its neighbours theirs. So the text is not
 * refused for its depth. Instead, everything below `mostLevels` is overwritten with a 0 and spaces while the text is read.
 * What is left of such an item is still deeper than the 100 levels that can be kept, so the checks of items refuse it.
 */
import { randomBytes } from 'node:crypto'

/** More than the 100 levels of a payload and those of the request around it. */
export const mostLevels = 150
/** A list or an object takes some 100 bytes. */
export const mostContainers = 1_000_000
export const mostValues = 5_000_000
export const mostMembers = 1_000_000
/**
 * Objects that have the same names in the same order are parsed quickly. Each name that follows names which it did not follow
 * before takes some 20 times as long as one that did, so those are counted by themselves.
 */
export const mostSequences = 100_000
/** A short text that did not occur before takes some 10 times as long as one that did. */
export const mostTexts = 400_000
/** V8 looks up whether it has seen a text of at most so many characters. */
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
  /** For each level, a hash of the names that its object has had so far. */
  readonly #names = new Uint32Array(mostLevels + 2)
  readonly #sequences = new Different(mostSequences)
  readonly #texts = new Different(mostTexts)

  /**
   * Takes the next bytes of the text, and overwrites what is nested too deep. Returns why the text must be refused, if it
   * must. Bytes suffice: in UTF-8 those of other characters look like none of these.
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
    if (this.#containers > mostContainers) return `it holds more than ${told(mostContainers)} lists and objects`
    if (this.#members > mostMembers) return `its objects have more than ${told(mostMembers)} members`
    if (this.#sequences.isExceeded)
      return `its objects have names in more than ${told(mostSequences)} different sequences`
    if (this.#texts.isExceeded) return `it holds more than ${told(mostTexts)} different short texts`
    return values > mostValues ? `it holds more than ${told(mostValues)} values` : undefined
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

  /** Before that there is no need to look for what is different: a small text cannot hold too much of it. */
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

/** Counts different hashes, roughly: it remembers a bit of each, and two may have the same. */
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

/** Nobody who does not know this number can find texts that have the same hash. */
const secret = randomBytes(4).readUInt32LE() | 1

function mixed(hash: number, value: number): number {
  const product = Math.imul(hash ^ value ^ 0x9e3779b9, secret)
  return Math.imul(product ^ (product >>> 15), 0x85ebca6b) ^ (product >>> 13)
}

const told = (count: number) => count.toLocaleString('en')

/** Parses JSON from a stranger. Throws an error that says why if it must be refused. */
export function parseBoundedJson(text: string): unknown {
  const bytes = new TextEncoder().encode(text)
  const fault = new JsonBounds().take(bytes)
  if (fault !== undefined) throw new Error(fault)
  return JSON.parse(new TextDecoder().decode(bytes))
}

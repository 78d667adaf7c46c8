/**
 * Bounds JSON text before it is parsed: megabytes of brackets would become gigabytes of objects.
 *
 * A request may hold many items, and an item that is nested too deep must not cost its neighbours theirs. So the text is not
 * refused for its depth. Instead, everything below `mostLevels` is overwritten with a 0 and spaces while the text is read.
 * What is left of such an item is still deeper than the 100 levels that can be kept, so the checks of items refuse it.
 */

/** More than the 100 levels of a payload and those of the request around it. */
export const mostLevels = 150
/** A list or an object takes some 100 bytes. */
export const mostContainers = 2_000_000
export const mostValues = 10_000_000
/** Names take far longer than other values, above all many different ones in one object. */
export const mostMembers = 1_000_000

const [quote, backslash, comma, colon, zero, space] = [0x22, 0x5c, 0x2c, 0x3a, 0x30, 0x20]
const [openList, closeList, openObject, closeObject] = [0x5b, 0x5d, 0x7b, 0x7d]

export class JsonBounds {
  #levels = 0
  #containers = 0
  #values = 1
  #members = 0
  #isInText = false
  #isEscaped = false

  /**
   * Takes the next bytes of the text, and overwrites what is nested too deep. Returns why the text must be refused, if it
   * must. Bytes suffice: in UTF-8 those of other characters look like none of these.
   */
  take(bytes: Uint8Array): string | undefined {
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]!
      const isBelow = this.#levels > mostLevels
      if (isBelow) bytes[at] = space
      if (this.#isInText) this.#takeText(byte)
      else if (byte === quote) this.#isInText = true
      else if (byte === openList || byte === openObject) {
        this.#levels += 1
        if (this.#levels === mostLevels + 1) bytes[at] = zero
        else if (!isBelow) this.#containers += 1
      } else if (byte === closeList || byte === closeObject) this.#levels -= 1
      else if (byte === comma && !isBelow) this.#values += 1
      else if (byte === colon && !isBelow) this.#members += 1
    }
    if (this.#containers > mostContainers)
      return `it holds more than ${mostContainers.toLocaleString('en')} lists and objects`
    if (this.#members > mostMembers) return `its objects have more than ${mostMembers.toLocaleString('en')} members`
    const values = this.#values + this.#containers
    return values > mostValues ? `it holds more than ${mostValues.toLocaleString('en')} values` : undefined
  }

  #takeText(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (byte === backslash) this.#isEscaped = true
    else if (byte === quote) this.#isInText = false
  }
}

/** Parses JSON from a stranger. Throws an error that says why if it must be refused. */
export function parseBoundedJson(text: string): unknown {
  const bytes = new TextEncoder().encode(text)
  const fault = new JsonBounds().take(bytes)
  if (fault !== undefined) throw new Error(fault)
  return JSON.parse(new TextDecoder().decode(bytes))
}

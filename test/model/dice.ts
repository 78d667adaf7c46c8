/** Chance that can be had again: the same seed gives the same throws. */
export interface Dice {
  /** In [0, 1). */
  throw(): number
  /** One of these; undefined if there are none. */
  among<T>(items: readonly T[]): T | undefined
}

export function dice(seed: number): Dice {
  let state = seed | 0
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return { throw: next, among: items => items[Math.floor(next() * items.length)] }
}

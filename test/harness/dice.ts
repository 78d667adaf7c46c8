/**
 * The seed of all random numbers of a test, set by the runner: always 1 for `npm test`, a new one for each
 * `npm run test:all`, or the one after `--seed`. It prints the seed with the totals.
 */
export const seed = Number(process.env.PAWL_TEST_SEED ?? 1)

/** Repeatable random numbers: the same seed gives the same numbers. */
export interface Dice {
  /** In [0, 1). */
  throw(): number
  /** A whole number from 0 to `sides - 1`. */
  below(sides: number): number
  /** One of the items; undefined if there are none. */
  among<T>(items: readonly T[]): T | undefined
}

export function dice(from: number): Dice {
  let state = from | 0
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (sides: number) => Math.floor(next() * sides)
  return { throw: next, below, among: items => items[below(items.length)] }
}

/**
 * Counts the work of a computation in steps and stops it when there are none left. A step takes well under a
 * microsecond and keeps at most some 100 bytes, so a number of steps bounds both time and memory. Unlike the clock, it is
 * the same on every machine and in a process that was paused.
 */
export class Meter {
  readonly total: number
  #left: number

  constructor(total: number) {
    this.total = total
    this.#left = total
  }

  get left(): number {
    return this.#left
  }

  spend(steps: number): void {
    this.#left -= steps
    if (this.#left < 0) throw new OutOfSteps(this.total)
  }

  /** Spends the cost of traversing a value: one step per part and per 16 characters. */
  spendFor(value: unknown): void {
    const parts = [value]
    while (parts.length > 0) {
      const part = parts.pop()
      this.spend(typeof part === 'string' ? 1 + part.length / 16 : 1)
      if (typeof part !== 'object' || part === null) continue
      for (const inner of Array.isArray(part) ? part : Object.values(part)) parts.push(inner)
    }
  }
}

export class OutOfSteps extends Error {
  constructor(total: number) {
    super(`it takes more than ${total.toLocaleString('en')} steps`)
  }
}

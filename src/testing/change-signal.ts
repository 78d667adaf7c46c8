/** Signals that something may have changed. A change between taking `next()` and awaiting it is not missed. */
export interface ChangeSignal {
  notify(): void
  /** Resolves at the next change. Call it before reading, so that it covers any change that the read missed. */
  next(): Promise<void>
}

export function makeChangeSignal(): ChangeSignal {
  let waiting: { promise: Promise<void>; resolve: () => void } | undefined
  return {
    notify() {
      waiting?.resolve()
      waiting = undefined
    },
    next() {
      if (waiting === undefined) {
        let resolve = () => {}
        const promise = new Promise<void>(done => {
          resolve = done
        })
        waiting = { promise, resolve }
      }
      return waiting.promise
    },
  }
}

/** Returns whether the promise settled in time. Always clears the timer. */
export async function inTime(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>(resolve => {
    timer = setTimeout(() => resolve(false), Math.max(0, ms))
  })
  const won = await Promise.race([promise.then(() => true), late])
  clearTimeout(timer)
  return won
}

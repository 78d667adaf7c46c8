/** Tells whoever waits that something may have changed. What comes between a look and the wait is not missed. */
export interface ChangeSignal {
  notify(): void
  /** Resolves at the next change. Taken before a look, it covers whatever the look did not see. */
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

/** True: it came in time. The timer does not outlive the wait. */
export async function inTime(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>(resolve => {
    timer = setTimeout(() => resolve(false), Math.max(0, ms))
  })
  const won = await Promise.race([promise.then(() => true), late])
  clearTimeout(timer)
  return won
}

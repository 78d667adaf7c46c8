/** Tells whoever waits that there is something to do. */
export interface WakeSignal {
  notify(): void
  /** Resolves at the next ring. Taken before one looks whether there is something, no ring is missed. */
  next(): Promise<void>
}

export function makeWakeSignal(): WakeSignal {
  let resolveNext: () => void
  let next: Promise<void>
  const prepareNext = () => {
    next = new Promise(resolve => {
      resolveNext = resolve
    })
  }
  prepareNext()
  return {
    notify() {
      resolveNext()
      prepareNext()
    },
    next: () => next,
  }
}

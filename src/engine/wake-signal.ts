/** Wakes waiting loops when there is work to do. */
export interface WakeSignal {
  notify(): void
  /** Resolves at the next `notify`. Call it before checking for work, so that no notification is missed. */
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

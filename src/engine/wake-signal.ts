/** Tells whoever waits that there is something to do. */
export interface Bell {
  ring(): void
  /** Resolves at the next ring. Taken before one looks whether there is something, no ring is missed. */
  rung(): Promise<void>
}

export function makeBell(): Bell {
  let hear: () => void
  let next: Promise<void>
  const hang = () => {
    next = new Promise(resolve => {
      hear = resolve
    })
  }
  hang()
  return {
    ring() {
      hear()
      hang()
    },
    rung: () => next,
  }
}

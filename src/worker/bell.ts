/** Wakes whoever waits; a ring that nobody heard is heard by the next. */
export interface Bell {
  ring(): void
  wait(ms: number): Promise<void>
}

export function makeBell(): Bell {
  let wake: (() => void) | undefined
  let rung = false
  return {
    ring() {
      rung = true
      wake?.()
    },
    async wait(ms) {
      if (!rung) {
        await new Promise<void>(resolve => {
          const timer = setTimeout(resolve, ms)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
      wake = undefined
      rung = false
    },
  }
}

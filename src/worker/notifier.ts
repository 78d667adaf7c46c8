/** Wakes whoever waits; a ring that nobody heard is heard by the next. */
export interface Notifier {
  notify(): void
  wait(ms: number): Promise<void>
}

export function makeNotifier(): Notifier {
  let wake: (() => void) | undefined
  let isNotified = false
  return {
    notify() {
      isNotified = true
      wake?.()
    },
    async wait(ms) {
      if (!isNotified) {
        await new Promise<void>(resolve => {
          const timer = setTimeout(resolve, ms)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
      wake = undefined
      isNotified = false
    },
  }
}

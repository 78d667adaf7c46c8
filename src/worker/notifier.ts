/** Wakes a waiting loop. A notification that nobody waited for wakes the next wait. */
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

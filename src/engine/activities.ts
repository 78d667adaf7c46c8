/** Most names that are kept of what has ended, if nobody takes them. */
const maxEnded = 100

/** The names of the requests and chores that are under way. They tell what may have blocked the event loop. */
export class Activities {
  readonly #underWay = new Map<symbol, string>()
  #ended: string[] = []

  /** Notes that something begins. Call what it returns when it ends. */
  begin(name: string): () => void {
    const key = Symbol(name)
    this.#underWay.set(key, name)
    return () => {
      if (!this.#underWay.delete(key)) return
      this.#ended.push(name)
      if (this.#ended.length > maxEnded) this.#ended.shift()
    }
  }

  /** The names of all that was under way at some time since the last call, the latest first. */
  take(): string[] {
    const names = [...this.#underWay.values(), ...this.#ended].reverse()
    this.#ended = []
    return [...new Set(names)]
  }
}

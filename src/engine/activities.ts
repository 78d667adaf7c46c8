/** Upper bound for finished names that nobody has taken yet. */
const maxEnded = 100

/** Names of the requests and chores in progress. They tell which of them may have blocked the event loop. */
export class Activities {
  readonly #underWay = new Map<symbol, string>()
  #ended: string[] = []

  /** Records the start of an activity. Call the returned function when it ends. */
  begin(name: string): () => void {
    const key = Symbol(name)
    this.#underWay.set(key, name)
    return () => {
      if (!this.#underWay.delete(key)) return
      this.#ended.push(name)
      if (this.#ended.length > maxEnded) this.#ended.shift()
    }
  }

  /** Returns the names of all activities that were in progress at any time since the last call, newest first. */
  take(): string[] {
    const names = [...this.#underWay.values(), ...this.#ended].reverse()
    this.#ended = []
    return [...new Set(names)]
  }
}

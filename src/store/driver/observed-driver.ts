import type { Driver } from './sql.ts'

export interface Observer {
  /** Hears how long each statement took, in transactions and outside. */
  noteSeconds(seconds: number): void
  /** Hears of each statement and each commit that failed. */
  noteFault(error: unknown): void
}

/** The same driver, observed. */
export function observed(driver: Driver, observer: Observer): Driver {
  const noted = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work
    } catch (error) {
      observer.noteFault(error)
      throw error
    }
  }
  const time = async <T>(work: () => Promise<T>): Promise<T> => {
    const began = performance.now()
    try {
      return await noted(work())
    } finally {
      observer.noteSeconds((performance.now() - began) / 1000)
    }
  }
  return {
    isTransaction: driver.isTransaction,
    query: (text, values) => time(() => driver.query(text, values)),
    script: text => time(() => driver.script(text)),
    begin: (work, bounds) => noted(driver.begin(inner => work(observed(inner, observer)), bounds)),
  }
}

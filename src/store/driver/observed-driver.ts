import type { Driver } from './sql.ts'

export interface Observer {
  /** Called with the duration of each statement, inside and outside transactions. */
  recordSeconds(seconds: number): void
  /** Called for each statement and each commit that failed. */
  recordFault(error: unknown): void
}

/** Wraps a driver so that an observer sees its durations and errors. */
export function observeDriver(driver: Driver, observer: Observer): Driver {
  const noted = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work
    } catch (error) {
      observer.recordFault(error)
      throw error
    }
  }
  const time = async <T>(work: () => Promise<T>): Promise<T> => {
    const began = performance.now()
    try {
      return await noted(work())
    } finally {
      observer.recordSeconds((performance.now() - began) / 1000)
    }
  }
  return {
    isTransaction: driver.isTransaction,
    query: (text, values) => time(() => driver.query(text, values)),
    script: text => time(() => driver.script(text)),
    begin: (work, bounds) => noted(driver.begin(inner => work(observeDriver(inner, observer)), bounds)),
  }
}

import type { Driver } from './sql.ts'

/** The same driver; `tell` hears how long each statement took, in transactions and outside. */
export function timed(driver: Driver, tell: (seconds: number) => void): Driver {
  const time = async <T>(work: () => Promise<T>): Promise<T> => {
    const began = performance.now()
    try {
      return await work()
    } finally {
      tell((performance.now() - began) / 1000)
    }
  }
  return {
    isTransaction: driver.isTransaction,
    query: (text, values) => time(() => driver.query(text, values)),
    script: text => time(() => driver.script(text)),
    begin: (work, bounds) => driver.begin(inner => work(timed(inner, tell)), bounds),
  }
}

import { Problem } from '../../src/kernel/problem.ts'
import type { Sql } from '../../src/store/driver/sql.ts'

/** The n-th statement never reaches the store, or it is executed and its answer is lost. */
export interface Loss {
  readonly n: number
  readonly of: 'statement' | 'answer'
}

export interface Losing {
  readonly sql: Sql
  /** False if there were fewer statements and nothing was lost. */
  wasLost(): boolean
}

/** State shared by one connection. It dies with the loss, and so does its open transaction. */
interface Line {
  isDead: boolean
}

/** Counts every statement, including begin, commit and savepoints, and loses one. */
export function losing(sound: Sql, { n, of }: Loss): Losing {
  let count = 0
  const away = () => new Problem('STORE_UNAVAILABLE', { why: `${of} ${n} was lost` })
  const isTheOne = () => ++count === n

  function wrap(sql: Sql, line: Line): Sql {
    const die = () => {
      line.isDead = sql.isTransaction
      return away()
    }
    async function step<T>(run: () => Promise<T>): Promise<T> {
      if (line.isDead) throw away()
      if (!isTheOne()) return run()
      if (of === 'answer') await run()
      throw die()
    }
    async function begin<T>(work: (tx: Sql) => Promise<T>): Promise<T> {
      if (line.isDead) throw away()
      if (isTheOne()) throw die()
      const inner = sql.isTransaction ? line : { isDead: false }
      let isAnswerLost = false
      const result = await sql.begin(async tx => {
        const done = await work(wrap(tx, inner))
        if (inner.isDead) throw away()
        if (isTheOne()) {
          if (of === 'statement') throw die()
          isAnswerLost = true
        }
        return done
      })
      if (isAnswerLost) throw die()
      return result
    }
    const tag: Pick<Sql, never> & ((...ask: Parameters<Sql>) => Promise<never[]>) = (...ask) =>
      step(() => sql<never>(...ask))
    return Object.assign(tag as unknown as Sql, {
      isTransaction: sql.isTransaction,
      checkTurn: () => sql.checkTurn(),
      schema: sql.schema,
      begin,
      script: (text: string) => step(() => sql.script(text)),
    })
  }
  return { sql: wrap(sound, { isDead: false }), wasLost: () => count >= n }
}

import type { Driver } from './sql.ts'

/**
 * A driver for an open transaction. `begin` sets a savepoint: if the work fails, only that part is rolled back, and the
 * owner of the transaction can continue.
 */
export function withSavepoints(statements: Pick<Driver, 'query' | 'script'>): Driver {
  let depth = 0
  const driver: Driver = {
    ...statements,
    isTransaction: true,
    async begin(work) {
      const name = `pawl_${++depth}`
      await driver.script(`savepoint ${name}`)
      try {
        const result = await work(driver)
        await driver.script(`release savepoint ${name}`)
        return result
      } catch (error) {
        await driver.script(`rollback to savepoint ${name}`).catch(() => {})
        throw error
      }
    },
  }
  return driver
}

/** The interface that a caller's transaction must offer. Clients of `pg` and transactions of PGlite have it. */
export interface CallerClient {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>
}

/**
 * A driver for a transaction that the caller has open. The caller commits or rolls back. If one of our calls fails, it
 * is rolled back to a savepoint, so the caller can continue.
 */
export function callerDriver(client: CallerClient): Driver {
  return withSavepoints({
    async query(text, values) {
      const { rows } = await client.query(text, [...values])
      const fields = Object.keys((rows[0] as object | undefined) ?? {})
      return { fields, rows: rows.map(row => fields.map(field => (row as Record<string, unknown>)[field])) }
    },
    script: async text => void (await client.query(text, [])),
  })
}

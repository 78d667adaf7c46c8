import type { Driver } from './sql.ts'

/**
 * Statements inside a transaction that someone holds. What is begun inside it is a savepoint: a part that fails is
 * undone by itself, and whoever holds the transaction can go on.
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

import postgres from 'postgres'
import { placeOrder } from '../../examples/transactions/postgres-js.ts'
import { testPromises } from './promises.ts'

const open = (options: object) => async (url: string) => {
  const sql = postgres(url, { max: 2, onnotice: () => {}, ...options })
  return {
    transaction: <T>(work: (tx: postgres.TransactionSql) => Promise<T>) =>
      sql.begin(async tx => ({ result: await work(tx) })).then(({ result }) => result as T),
    insert: (tx: postgres.TransactionSql, { id, item }: { id: number; item: string }) =>
      tx`insert into orders values (${id}, ${item})`,
    run: (tx: postgres.TransactionSql, statement: string) => tx.unsafe(statement),
    placeOrder: (engine: Parameters<typeof placeOrder>[0], order: Parameters<typeof placeOrder>[2]) =>
      placeOrder(engine, sql, order),
    mistakes: [{ given: sql, why: /not the `sql` of a transaction.*sql\.begin/ }],
    close: () => sql.end(),
  }
}

testPromises<postgres.TransactionSql>('postgres.js', open({}))
testPromises<postgres.TransactionSql>('postgres.js in camel case', open({ transform: postgres.camel, prepare: false }))

import { CamelCasePlugin, CompiledQuery, Kysely, PostgresDialect, type Transaction } from 'kysely'
import pg from 'pg'
import { placeOrder } from '../../examples/transactions/kysely.ts'
import type { Order } from '../../examples/transactions/order.ts'
import { testPromises } from './promises.ts'

interface Tables {
  orders: Order
}

testPromises<Transaction<Tables>>('Kysely', url => {
  const pool = new pg.Pool({ connectionString: url })
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }), plugins: [new CamelCasePlugin()] })
  return {
    transaction: work => db.transaction().execute(work),
    insert: (tx, order) => tx.insertInto('orders').values(order).execute(),
    run: (tx, statement) => tx.executeQuery(CompiledQuery.raw(statement)),
    placeOrder: (engine, order) => placeOrder(engine, db, order),
    mistakes: [{ given: db, why: /it is a Kysely instance, not a transaction.*db\.transaction/ }],
    close: () => db.destroy(),
  }
})

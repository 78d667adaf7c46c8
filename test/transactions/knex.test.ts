import knex, { type Knex } from 'knex'
import { placeOrder } from '../../examples/transactions/knex.ts'
import { testPromises } from './promises.ts'

testPromises<Knex.Transaction>('Knex', url => {
  const db = knex({ client: 'pg', connection: url, pool: { min: 0, max: 2 } })
  return {
    transaction: work => db.transaction(work),
    insert: (tx, order) => tx('orders').insert(order),
    run: (tx, statement) => tx.raw(statement),
    placeOrder: (engine, order) => placeOrder(engine, db, order),
    mistakes: [{ given: db, why: /it is a `knex` instance, not a transaction.*knex\.transaction/ }],
    close: () => db.destroy(),
  }
})

import { sql as raw } from 'drizzle-orm'
import { type NodePgDatabase, drizzle as overPg } from 'drizzle-orm/node-postgres'
import { drizzle as overPostgresJs } from 'drizzle-orm/postgres-js'
import pg from 'pg'
import postgres from 'postgres'
import { placeOrder } from '../../examples/transactions/drizzle.ts'
import { type Library, testPromises } from './promises.ts'

type Transaction = Parameters<Parameters<NodePgDatabase['transaction']>[0]>[0]

function drizzle(db: NodePgDatabase, close: () => Promise<void>): Library<Transaction> {
  return {
    transaction: work => db.transaction(work),
    insert: (tx, { id, item }) => tx.execute(raw`insert into orders values (${id}, ${item})`),
    run: (tx, statement) => tx.execute(statement),
    placeOrder: (engine, order) => placeOrder(engine, db, order),
    mistakes: [{ given: db, why: /it is a database, not a transaction.*db\.transaction/ }],
    close,
  }
}

testPromises('Drizzle', url => {
  const pool = new pg.Pool({ connectionString: url })
  return drizzle(overPg(pool), () => pool.end())
})

testPromises('Drizzle over postgres.js', url => {
  const sql = postgres(url, { max: 2 })
  return drizzle(overPostgresJs(sql) as unknown as NodePgDatabase, () => sql.end())
})

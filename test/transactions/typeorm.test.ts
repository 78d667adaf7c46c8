import { DataSource, type EntityManager, type QueryRunner } from 'typeorm'
import { orders, placeOrder } from '../../examples/transactions/typeorm.ts'
import { type Library, testPromises } from './promises.ts'

async function typeorm<Tx extends EntityManager | QueryRunner>(
  url: string,
  transaction: (db: DataSource) => Library<Tx>['transaction'],
): Promise<Library<Tx>> {
  const db = new DataSource({ type: 'postgres', url, entities: [orders] })
  await db.initialize()
  const runner = db.createQueryRunner()
  return {
    transaction: transaction(db),
    insert: (tx, { id, item }) => tx.query('insert into orders values ($1, $2)', [id, item]),
    run: (tx, statement) => tx.query(statement),
    placeOrder: (engine, order) => placeOrder(engine, db, order),
    mistakes: [
      { given: db, why: /it is a DataSource.*dataSource\.transaction/ },
      { given: db.manager, why: /it is an EntityManager outside of a transaction/ },
      { given: runner, why: /its transaction has not begun/ },
    ],
    async close() {
      await runner.release()
      await db.destroy()
    },
  }
}

testPromises<EntityManager>('TypeORM', url => typeorm(url, db => work => db.transaction(work)))

testPromises<QueryRunner>('a QueryRunner of TypeORM', url =>
  typeorm(url, db => async work => {
    const runner = db.createQueryRunner()
    await runner.startTransaction()
    try {
      const result = await work(runner)
      await runner.commitTransaction()
      return result
    } catch (error) {
      await runner.rollbackTransaction()
      throw error
    } finally {
      await runner.release()
    }
  }),
)

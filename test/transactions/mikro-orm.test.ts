import { type EntityManager, MikroORM } from '@mikro-orm/postgresql'
import { orders, placeOrder } from '../../examples/transactions/mikro-orm.ts'
import { testPromises } from './promises.ts'

testPromises<EntityManager>('MikroORM', async url => {
  const options = new URL(url).searchParams.get('options')!
  const orm = await MikroORM.init({
    clientUrl: url,
    entities: [orders],
    driverOptions: { connection: { options } },
    allowGlobalContext: true,
  })
  return {
    transaction: work => orm.em.transactional(work),
    insert: (tx, order) => tx.insert(orders, order),
    run: (tx, statement) => tx.execute(statement),
    placeOrder: (engine, order) => placeOrder(engine, orm, order),
    mistakes: [{ given: orm.em, why: /it is an EntityManager outside of a transaction.*em\.transactional/ }],
    close: () => orm.close(),
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { shipTask } from '../../examples/transactions/complete.ts'
import { placeOrder } from '../../examples/transactions/pg.ts'
import { startWorker } from '../../src/worker/worker.ts'
import { ended } from '../harness/eventually.ts'
import { fresh } from '../harness/fresh.ts'
import { testPromises } from './promises.ts'

testPromises<pg.PoolClient>('pg', async url => {
  const pool = new pg.Pool({ connectionString: url })
  const idle = new pg.Client({ connectionString: url })
  await idle.connect()
  return {
    async transaction(work) {
      const client = await pool.connect()
      try {
        await client.query('begin')
        const result = await work(client)
        await client.query('commit')
        return result
      } catch (error) {
        await client.query('rollback')
        throw error
      } finally {
        client.release()
      }
    },
    insert: (tx, { id, item }) => tx.query('insert into orders values ($1, $2)', [id, item]),
    run: (tx, statement) => tx.query(statement),
    placeOrder: (engine, order) => placeOrder(engine, pool, order),
    mistakes: [
      { given: pool, why: /it is a pool.*a client from `pool.connect\(\)`/ },
      { given: idle, why: /can only be used in transaction blocks/ },
    ],
    async close() {
      await idle.end()
      await pool.end()
    },
  }
})

test('the handler of the docs ends its task together with its row', async t => {
  const { engine, sql, schema, url } = await fresh(t)
  await sql.script('create table pawl.shipments (order_id integer primary key)')
  const pool = new pg.Pool({ connectionString: url, options: `-c search_path=${schema}` })
  t.after(() => pool.end())
  const ship = shipTask(pool)
  const worker = startWorker(engine, [ship])
  t.after(() => worker.stop())
  const { id } = await engine.enqueue(ship, { id: 7, item: 'tea' })
  assert.deepEqual((await ended(engine, id)).output, { shipped: 7 })
  assert.deepEqual(await sql`select order_id from pawl.shipments`, [{ orderId: 7 }])
})

import type { Pawl } from 'pawl'
import type { Pool } from 'pg'
import type { Order } from './order.ts'

export async function placeOrder(engine: Pawl, pool: Pool, order: Order): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query('insert into orders (id, item) values ($1, $2)', [order.id, order.item])
    await engine.enqueue('ship', order, { tx: client })
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}

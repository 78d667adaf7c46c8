import type { Knex } from 'knex'
import type { Pawl } from 'pawl'
import type { Order } from './order.ts'

export async function placeOrder(engine: Pawl, db: Knex, order: Order): Promise<void> {
  await db.transaction(async tx => {
    await tx<Order>('orders').insert(order)
    await engine.enqueue('ship', order, { tx })
  })
}

import { EntitySchema, type MikroORM } from '@mikro-orm/postgresql'
import type { Pawl } from 'pawl'
import type { Order } from './order.ts'

export const orders = new EntitySchema<Order>({
  name: 'Order',
  tableName: 'orders',
  properties: { id: { type: 'integer', primary: true }, item: { type: 'text' } },
})

export async function placeOrder(engine: Pawl, { em }: MikroORM, order: Order): Promise<void> {
  await em.transactional(async tx => {
    await tx.insert(orders, order)
    await engine.enqueue('ship', order, { tx })
  })
}

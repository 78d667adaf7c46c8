import type { Pawl } from 'pawl'
import { type DataSource, EntitySchema } from 'typeorm'
import type { Order } from './order.ts'

export const orders = new EntitySchema<Order>({
  name: 'orders',
  columns: { id: { type: Number, primary: true }, item: { type: String } },
})

export async function placeOrder(engine: Pawl, db: DataSource, order: Order): Promise<void> {
  await db.transaction(async tx => {
    await tx.insert(orders, order)
    await engine.enqueue('ship', order, { tx })
  })
}

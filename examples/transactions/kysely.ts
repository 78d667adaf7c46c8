import type { Kysely } from 'kysely'
import type { Pawl } from 'pawl'
import type { Order } from './order.ts'

export async function placeOrder(engine: Pawl, db: Kysely<{ orders: Order }>, order: Order): Promise<void> {
  await db.transaction().execute(async tx => {
    await tx.insertInto('orders').values(order).execute()
    await engine.enqueue('ship', order, { tx })
  })
}

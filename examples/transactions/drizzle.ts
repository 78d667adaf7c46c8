import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import { integer, pgTable, text } from 'drizzle-orm/pg-core'
import type { Pawl } from 'pawl'
import type { Order } from './order.ts'

const orders = pgTable('orders', { id: integer().primaryKey(), item: text().notNull() })

export async function placeOrder(engine: Pawl, db: NodePgDatabase, order: Order): Promise<void> {
  await db.transaction(async tx => {
    await tx.insert(orders).values(order)
    await engine.enqueue('ship', order, { tx })
  })
}

import type { Pawl } from 'pawl'
import type { Sql } from 'postgres'
import type { Order } from './order.ts'

export async function placeOrder(engine: Pawl, sql: Sql, order: Order): Promise<void> {
  await sql.begin(async tx => {
    await tx`insert into orders ${tx({ ...order })}`
    await engine.enqueue('ship', order, { tx })
  })
}

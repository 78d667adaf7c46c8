import { defineTask } from 'pawl'
import type { Pool } from 'pg'
import type { Order } from './order.ts'

export function shipTask(pool: Pool) {
  return defineTask({
    type: 'ship',
    async handler(order: Order, ctx) {
      const client = await pool.connect()
      try {
        await client.query('begin')
        await client.query('insert into shipments (order_id) values ($1)', [order.id])
        await ctx.complete(client, { shipped: order.id })
        await client.query('commit')
      } catch (error) {
        await client.query('rollback')
        throw error
      } finally {
        client.release()
      }
    },
  })
}

import type { Pawl } from 'pawl'
import type { PrismaClient } from './generated/client.ts'
import type { Order } from './order.ts'

export async function placeOrder(engine: Pawl, prisma: PrismaClient, order: Order): Promise<void> {
  await prisma.$transaction(async tx => {
    await tx.order.create({ data: order })
    await engine.enqueue('ship', order, { tx })
  })
}

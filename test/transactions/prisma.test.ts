import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from '../../examples/transactions/generated/client.ts'
import { placeOrder } from '../../examples/transactions/prisma.ts'
import { testPromises } from './promises.ts'

type Transaction = Parameters<Parameters<PrismaClient['$transaction']>[0]>[0]

testPromises<Transaction>('Prisma', (url, schema) => {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }, { schema }) })
  return {
    transaction: work => prisma.$transaction(work),
    insert: (tx, { id, item }) => tx.$executeRawUnsafe('insert into orders values ($1, $2)', id, item),
    run: (tx, statement) => tx.$executeRawUnsafe(statement),
    placeOrder: (engine, order) => placeOrder(engine, prisma, order),
    mistakes: [{ given: prisma, why: /it is a PrismaClient, not a transaction.*prisma\.\$transaction/ }],
    close: () => prisma.$disconnect(),
  }
})

/** The types that the compiler accepts as `tx`. Each line with @ts-expect-error is an error that users must get. */
import { test } from 'node:test'
import type { EntityManager as MikroOrmManager } from '@mikro-orm/postgresql'
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js'
import type { Knex } from 'knex'
import type { ControlledTransaction, Kysely, Transaction } from 'kysely'
import type { CallerTransaction, Pawl } from 'pawl'
import type { Client, Pool, PoolClient } from 'pg'
import type { Sql, TransactionSql } from 'postgres'
import type { DataSource, EntityManager, QueryRunner } from 'typeorm'
import type { PrismaClient } from '../../examples/transactions/generated/client.ts'
import type { TaskContext } from '../../src/worker/define-task.ts'

interface Tables {
  orders: { id: number }
}
type DrizzleTransaction = Parameters<Parameters<NodePgDatabase['transaction']>[0]>[0]
type DrizzleOverPostgresJs = Parameters<Parameters<PostgresJsDatabase['transaction']>[0]>[0]
type PrismaTransaction = Parameters<Parameters<PrismaClient['$transaction']>[0]>[0]
type EngineTransaction = Parameters<Parameters<Pawl['transaction']>[0]>[0]

/** `true`, or an error when this file is compiled. */
type Accepted<Tx extends CallerTransaction> = Tx extends CallerTransaction ? true : never

export type Transactions = [
  Accepted<Client>,
  Accepted<PoolClient>,
  Accepted<TransactionSql>,
  Accepted<DrizzleTransaction>,
  Accepted<DrizzleOverPostgresJs>,
  Accepted<Transaction<Tables>>,
  Accepted<ControlledTransaction<Tables>>,
  Accepted<Knex.Transaction>,
  Accepted<PrismaTransaction>,
  Accepted<EntityManager>,
  Accepted<QueryRunner>,
  Accepted<MikroOrmManager>,
  Accepted<EngineTransaction>,
]

export type Mistakes = [
  // @ts-expect-error: a pool
  Accepted<Pool>,
  // @ts-expect-error: a database of postgres.js
  Accepted<Sql>,
  // @ts-expect-error: a database of Drizzle
  Accepted<NodePgDatabase>,
  // @ts-expect-error: a database of Kysely
  Accepted<Kysely<Tables>>,
  // @ts-expect-error: a Knex instance
  Accepted<Knex>,
  // @ts-expect-error: a PrismaClient
  Accepted<PrismaClient>,
  // @ts-expect-error: a data source
  Accepted<DataSource>,
  // @ts-expect-error: a connection string
  Accepted<string>,
  // @ts-expect-error: an object without methods
  Accepted<object>,
]

export async function joined(engine: Pawl, ctx: TaskContext, tx: CallerTransaction, pool: Pool) {
  await engine.enqueue('a', null, { tx })
  await engine.enqueueMany([{ type: 'a', payload: null }], { tx })
  await engine.submit({ name: 'j', stages: [] }, { tx })
  await engine.cancel('id', { tx })
  await engine.succeed('id', 1, { tx })
  await ctx.complete(tx)
  // @ts-expect-error: a pool
  await engine.enqueue('a', null, { tx: pool })
  // @ts-expect-error: a pool
  await ctx.complete(pool)
}

test('the compiler accepts the transaction of each library, and neither pools nor databases', () => {
  // The file would not have been compiled.
})

/**
 * The transactions that calls of the engine can join, by their shape: Pawl imports none of these libraries. Each shape
 * has what Pawl calls, and enough to tell a transaction from a pool or a data source when the code is compiled.
 */

/** The handle that `transaction()` of the engine passes. */
export interface EngineTransaction {
  readonly isTransaction: boolean
  readonly schema: string
  script(text: string): Promise<void>
}

/** `pg`: a `Client`, or a client from `pool.connect()`, between BEGIN and COMMIT. */
export interface PgTransaction {
  query(text: string, values: unknown[]): Promise<unknown>
  escapeLiteral(text: string): string
}

/** postgres.js: what `sql.begin` passes. */
export interface PostgresJsTransaction {
  unsafe(text: string, values?: (string | null)[]): PromiseLike<readonly object[]>
  savepoint(work: never): Promise<unknown>
}

/** Drizzle: the transaction that `db.transaction` passes. */
export interface DrizzleTransaction {
  transaction(work: never): Promise<unknown>
  execute(query: string): PromiseLike<unknown>
  rollback(): never
}

/** Kysely: the transaction that `db.transaction().execute` passes, or a transaction from `db.startTransaction()`. */
export interface KyselyTransaction {
  readonly isTransaction: true
  executeQuery(query: never): Promise<{ readonly rows: readonly unknown[] }>
  getExecutor(): unknown
}

/** Knex: the transaction that `knex.transaction` passes or returns. */
export interface KnexTransaction {
  raw(text: string, bindings: never): PromiseLike<unknown>
  isCompleted(): boolean
}

/** Prisma: the client that `prisma.$transaction(async tx => …)` passes. */
export interface PrismaTransaction {
  $queryRawUnsafe(text: string, ...values: (string | null)[]): PromiseLike<unknown>
  $executeRawUnsafe(text: string, ...values: (string | null)[]): PromiseLike<unknown>
  readonly $connect?: never
}

/** TypeORM: the `EntityManager` that `dataSource.transaction` passes. */
export interface TypeOrmTransaction {
  readonly queryRunner?: object
  query(text: string, values?: unknown[]): Promise<unknown>
  withRepository(repository: never): unknown
}

/** TypeORM: a `QueryRunner` after `startTransaction`. */
export interface TypeOrmQueryRunner {
  readonly isTransactionActive: boolean
  query(text: string, values?: unknown[]): Promise<unknown>
  startTransaction(...options: never[]): Promise<void>
}

/** MikroORM: the `EntityManager` that `em.transactional` passes, or one after `em.begin()`. */
export interface MikroOrmTransaction {
  isInTransaction(): boolean
  getTransactionContext(): unknown
}

/** A transaction that a call can join: of the engine, or of another client of the same database. */
export type CallerTransaction =
  | EngineTransaction
  | PgTransaction
  | PostgresJsTransaction
  | DrizzleTransaction
  | KyselyTransaction
  | KnexTransaction
  | PrismaTransaction
  | TypeOrmTransaction
  | TypeOrmQueryRunner
  | MikroOrmTransaction

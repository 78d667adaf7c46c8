/**
 * How to recognise the transaction of each library, and how to send statements in it. One entry per library. Libraries
 * are recognised by their methods, because none of them is imported.
 */
import { Problem } from '../../kernel/problem.ts'
import type * as transactions from '../../kernel/transactions.ts'

type Values = readonly (string | null)[]

/** Statements in an open transaction. */
export interface Statements {
  /** Runs one statement with `$1` parameters and returns its rows, as the library delivers them. */
  query(text: string, values: Values): PromiseLike<unknown>
  /** Runs several statements without parameters or results. Default: `query`. */
  script?(text: string): PromiseLike<unknown>
  /**
   * Runs `work` in a savepoint of the library, for libraries that roll back the whole transaction after any error
   * outside of one. Default: SAVEPOINT statements.
   */
  savepoint?<T>(work: (inner: Statements) => Promise<T>): Promise<T>
}

interface Library {
  readonly name: string
  /** Tells the user which object to pass. */
  readonly pass: string
  /** Whether the object comes from this library. It need not be a transaction. */
  recognizes(candidate: Candidate): boolean
  /** Why the object is not an open transaction; undefined: it may be one. */
  fault?(candidate: Candidate): string | undefined
  statements(candidate: Candidate): Statements
}

/** An object of unknown origin. */
type Candidate = Readonly<Record<string, unknown>>

/** Whether the object has all of these methods. */
const has = (candidate: Candidate, ...methods: readonly string[]) =>
  methods.every(name => typeof candidate[name] === 'function')

const isFunction = (candidate: Candidate) => typeof candidate === 'function'

const libraries: readonly Library[] = [
  {
    name: 'postgres.js',
    pass: 'the `sql` that `sql.begin(async sql => …)` passes to your function',
    recognizes: candidate => isFunction(candidate) && has(candidate, 'unsafe'),
    fault: candidate => (has(candidate, 'savepoint') ? undefined : 'it is not the `sql` of a transaction'),
    statements: candidate => postgresJs(candidate as unknown as transactions.PostgresJsTransaction),
  },
  {
    name: 'Knex',
    pass: 'the `trx` that `knex.transaction` passes or returns',
    recognizes: candidate => isFunction(candidate) && has(candidate, 'raw', 'transaction'),
    fault(candidate) {
      if (candidate.isTransaction !== true) return 'it is a `knex` instance, not a transaction'
      return (candidate as unknown as transactions.KnexTransaction).isCompleted() ? hasEnded : undefined
    },
    statements: candidate => knex(candidate as unknown as transactions.KnexTransaction),
  },
  {
    name: 'MikroORM',
    pass: 'the `em` that `em.transactional(async em => …)` passes to your function, or an `em` after `em.begin()`',
    recognizes: candidate => has(candidate, 'getTransactionContext', 'isInTransaction'),
    fault: candidate => {
      const em = candidate as unknown as transactions.MikroOrmTransaction
      if (!em.isInTransaction()) return 'it is an EntityManager outside of a transaction'
      const { library, fault } = findLibrary(em.getTransactionContext())
      return library === undefined ? 'its connection is not one of PostgreSQL' : fault
    },
    statements: candidate => {
      const inner = (candidate as unknown as transactions.MikroOrmTransaction).getTransactionContext()
      return findLibrary(inner).library!.statements(inner as Candidate)
    },
  },
  {
    name: 'Prisma',
    pass: 'the `tx` that `prisma.$transaction(async tx => …)` passes to your function',
    recognizes: candidate => has(candidate, '$queryRawUnsafe', '$executeRawUnsafe'),
    fault: candidate => (has(candidate, '$connect') ? 'it is a PrismaClient, not a transaction' : undefined),
    statements: candidate => prisma(candidate as unknown as transactions.PrismaTransaction),
  },
  {
    name: 'Kysely',
    pass: 'the `trx` that `db.transaction().execute(async trx => …)` passes to your function',
    recognizes: candidate => has(candidate, 'executeQuery', 'getExecutor'),
    fault: candidate => (candidate.isTransaction === true ? undefined : 'it is a Kysely instance, not a transaction'),
    statements: candidate => kysely(candidate as unknown as transactions.KyselyTransaction),
  },
  {
    name: 'Drizzle',
    pass: 'the `tx` that `db.transaction(async tx => …)` passes to your function',
    recognizes: candidate => has(candidate, 'execute', 'transaction') && typeof candidate.session === 'object',
    fault: candidate => (has(candidate, 'rollback') ? undefined : 'it is a database, not a transaction'),
    statements: candidate => drizzle(candidate as unknown as DrizzleInternals),
  },
  {
    name: 'TypeORM',
    pass: 'the `manager` that `dataSource.transaction(async manager => …)` passes to your function, or a QueryRunner after `startTransaction()`',
    recognizes: candidate =>
      has(candidate, 'withRepository') || has(candidate, 'startTransaction') || has(candidate, 'createQueryRunner'),
    fault(candidate) {
      if (has(candidate, 'createQueryRunner')) return 'it is a DataSource, not a transaction'
      const runner = queryRunnerOf(candidate)
      if (runner === undefined) return 'it is an EntityManager outside of a transaction'
      return runner.isTransactionActive ? undefined : 'its transaction has not begun, or has ended'
    },
    statements: candidate => ({ query: (text, values) => queryRunnerOf(candidate)!.query(text, [...values]) }),
  },
  {
    name: 'pg',
    pass: 'a client from `pool.connect()`, after `BEGIN`',
    recognizes: candidate => has(candidate, 'query') && (has(candidate, 'escapeLiteral') || isPool(candidate)),
    fault: candidate =>
      isPool(candidate) ? 'it is a pool, which may send every statement through another connection' : undefined,
    statements: candidate => pg(candidate as unknown as transactions.PgTransaction),
  },
]

const hasEnded = 'it was committed or rolled back'

const isPool = (candidate: Candidate) => has(candidate, 'connect') && typeof candidate.totalCount === 'number'

interface QueryRunner extends transactions.TypeOrmQueryRunner {}

const queryRunnerOf = (candidate: Candidate) =>
  (has(candidate, 'startTransaction') ? candidate : candidate.queryRunner) as unknown as QueryRunner | undefined

function pg(client: transactions.PgTransaction): Statements {
  return { query: (text, values) => client.query(text, [...values]) }
}

function postgresJs(sql: transactions.PostgresJsTransaction): Statements {
  return {
    query: (text, values) => sql.unsafe(text, [...values]),
    savepoint: work =>
      sql.savepoint(((inner: transactions.PostgresJsTransaction) => work(postgresJs(inner))) as never) as ReturnType<
        typeof work
      >,
  }
}

/** Knex numbers its parameters itself, in the order of their question marks. Ours are in the same order. */
function knex(trx: transactions.KnexTransaction): Statements {
  const escaped = (text: string) => text.replaceAll('?', '\\?')
  return {
    query: (text, values) => trx.raw(escaped(text).replace(/\$\d+/g, '?'), values as never),
    script: text => trx.raw(escaped(text), [] as never),
  }
}

function prisma(tx: transactions.PrismaTransaction): Statements {
  return {
    query: (text, values) => tx.$queryRawUnsafe(text, ...values),
    script: text => tx.$executeRawUnsafe(text),
  }
}

function kysely(trx: transactions.KyselyTransaction): Statements {
  return {
    query(text, values) {
      const fragment = { kind: 'RawNode', sqlFragments: [text], parameters: [] }
      const compiled = { sql: text, parameters: values, query: fragment, queryId: { queryId: 'pawl' } }
      return trx.executeQuery(compiled as never)
    },
  }
}

/** Drizzle runs text with parameters only through the session that all its drivers have. */
interface DrizzleInternals extends transactions.DrizzleTransaction {
  readonly session: {
    prepareQuery(
      query: { sql: string; params: Values },
      fields: undefined,
      name: undefined,
      isArray: false,
    ): {
      execute(): Promise<unknown>
    }
  }
}

function drizzle(tx: DrizzleInternals): Statements {
  return {
    query: (text, values) =>
      tx.session.prepareQuery({ sql: text, params: [...values] }, undefined, undefined, false).execute(),
    savepoint: work =>
      tx.transaction(((inner: DrizzleInternals) => work(drizzle(inner))) as never) as ReturnType<typeof work>,
  }
}

function findLibrary(candidate: unknown): { library?: Library; fault?: string | undefined } {
  if ((typeof candidate !== 'object' && typeof candidate !== 'function') || candidate === null) return {}
  const library = libraries.find(one => one.recognizes(candidate as Candidate))
  return library === undefined ? {} : { library, fault: library.fault?.(candidate as Candidate) }
}

/** Returns the statements of a library's transaction. Throws if the object is not a transaction, or if it has ended. */
export function statementsOf(candidate: unknown): Statements {
  const { library, fault } = findLibrary(candidate)
  if (library === undefined) {
    const accepted = libraries.map(({ name }) => name).join(', ')
    throw new Problem('TRANSACTION_UNKNOWN', { given: kindOf(candidate), accepted: `engine.transaction, ${accepted}` })
  }
  if (fault === undefined) return library.statements(candidate as Candidate)
  throw new Problem('TRANSACTION_NOT_OPEN', { library: library.name, why: fault, pass: library.pass })
}

function kindOf(candidate: unknown): string {
  if (typeof candidate !== 'object' || candidate === null) return candidate === null ? 'null' : typeof candidate
  const { name } = candidate.constructor ?? {}
  return name === undefined || name === 'Object'
    ? `object with ${Object.keys(candidate).slice(0, 10).join(', ')}`
    : name
}

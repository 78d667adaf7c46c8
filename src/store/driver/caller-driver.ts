/**
 * A driver for a transaction that another library has open. The caller commits or rolls back. Each call of the engine
 * runs in a savepoint: if it fails, only the call is rolled back, and the caller can continue.
 */
import { Problem, type ProblemCode } from '../../kernel/problem.ts'
import type { Description } from './describe.ts'
import { type Statements, statementsOf } from './libraries.ts'
import { parseRow, withTextRows, withTextValues } from './row-text.ts'
import { type Driver, withSavepoints } from './sql.ts'
import { asProblem } from './store-fault.ts'

/** Reads the text of a value. */
type Parse = (text: string) => unknown

/** Asks the server about statements, on a connection of ours. */
export interface StatementTypes {
  describe(text: string): Promise<Description>
  /** The names of types, by OID. */
  namesOf(types: readonly number[]): Promise<ReadonlyMap<number, string>>
  parserFor(type: number): Parse
}

/** A statement as it is sent. `fields` is undefined if it returns no rows. */
interface Prepared {
  readonly text: string
  readonly fields?: readonly string[]
  readonly parsers?: readonly Parse[]
}

export type RunInTransaction = <T>(tx: object, work: (driver: Driver) => Promise<T>) => Promise<T>

/** Returns the function that runs the calls of an engine in transactions of other libraries. */
export function callerTransactions(types: StatementTypes): RunInTransaction {
  const prepared = new Map<string, Promise<Prepared>>()
  const prepare = (text: string) => {
    const known = prepared.get(text)
    if (known !== undefined) return known
    const making = prepareStatement(types, text)
    prepared.set(text, making)
    making.catch(() => prepared.delete(text))
    return making
  }
  const lastCalls = new WeakMap<object, Promise<unknown>>()
  return async (tx, work) => {
    statementsOf(tx)
    const run = () => callerDriver(statementsOf(tx), prepare).begin(work)
    // Savepoints nest. Calls that begin at the same time run one after the other.
    const call = (lastCalls.get(tx) ?? Promise.resolve()).then(run)
    lastCalls.set(
      tx,
      call.catch(() => {}),
    )
    return call
  }
}

/** The embedded store has its own connection, so no other library has a transaction in it. */
export async function refuseForeign(tx: object): Promise<never> {
  statementsOf(tx)
  throw new Problem('TRANSACTION_ELSEWHERE', { why: 'the engine runs on the embedded store' })
}

async function prepareStatement(types: StatementTypes, text: string): Promise<Prepared> {
  const { parameters, columns } = await types.describe(text)
  const names = await types.namesOf(parameters)
  const sent = withTextValues(
    text,
    parameters.map(type => names.get(type)!),
  )
  if (columns === undefined) return { text: sent }
  return {
    text: withTextRows(sent),
    fields: columns.map(({ name }) => name),
    parsers: columns.map(({ type }) => types.parserFor(type)),
  }
}

function callerDriver(statements: Statements, prepare: (text: string) => Promise<Prepared>): Driver {
  const own: Pick<Driver, 'query' | 'script'> = {
    async query(text, values) {
      const { text: sent, fields, parsers = [] } = await prepare(text)
      const result = await named(() => statements.query(sent, values))
      if (fields === undefined) return { fields: [], rows: [] }
      const parse = (row: string) => {
        const columns = parseRow(row)
        return parsers.map((parser, index) => (columns[index] == null ? null : parser(columns[index])))
      }
      return { fields, rows: textsOf(result).map(parse) }
    },
    script: async text => void (await named(() => statements.script?.(text) ?? statements.query(text, []))),
  }
  if (statements.savepoint === undefined) return withSavepoints(own)
  return {
    ...own,
    isTransaction: true,
    checkTurn() {},
    begin: work => named(() => statements.savepoint!(inner => work(callerDriver(inner, prepare)))),
  }
}

/** Some libraries return an array of rows, others an object with one. The name of the column may have been changed. */
function textsOf(result: unknown): string[] {
  const rows = Array.isArray(result) ? result : (result as { rows: object[] }).rows
  return rows.map(row => Object.values(row as object)[0] as string)
}

async function named<T>(work: () => PromiseLike<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw asProblem(unwrapped(error))
  }
}

/** Problems of the transaction itself, by SQLSTATE or by the code of the library. */
const transactionProblems: Readonly<Record<string, ProblemCode>> = {
  '25P01': 'TRANSACTION_NOT_OPEN',
  // Prisma: the transaction has ended or has timed out.
  P2028: 'TRANSACTION_NOT_OPEN',
  '25P02': 'TRANSACTION_FAILED',
  '3F000': 'TRANSACTION_ELSEWHERE',
  '42P01': 'TRANSACTION_ELSEWHERE',
}

/** Libraries wrap the error of the server. Returns one that has its code, as the rest of the engine expects. */
function unwrapped(error: unknown): unknown {
  if (error instanceof Problem) return error
  const found = innermostWithCode(error)
  if (found === undefined)
    return hasEnded(error) ? new Problem('TRANSACTION_NOT_OPEN', { why: error.message }, error) : error
  const problem = transactionProblems[found.originalCode ?? found.code!]
  if (problem !== undefined) return new Problem(problem, { why: found.originalMessage ?? found.message }, error)
  const isComplete = found instanceof Error && !('constraint_name' in found)
  return isComplete ? found : serverError(found, error)
}

/** Kysely knows that its transaction has ended, and sends nothing. */
const hasEnded = (error: unknown): error is Error =>
  error instanceof Error && /^Transaction is already (committed|rolled back)/.test(error.message)

/** An error of a server, in the words of `pg`, postgres.js (`constraint_name`) or Prisma (`original…`, `index`). */
interface ErrorFields {
  readonly message?: string
  readonly originalMessage?: string
  readonly code?: string
  readonly originalCode?: string
  readonly constraint?: string | { readonly index?: string }
  readonly constraint_name?: string
  readonly detail?: string
}

function serverError(found: ErrorFields, cause: unknown): Error {
  const { message, originalMessage, code, originalCode, constraint, constraint_name, detail } = found
  const name = constraint_name ?? (typeof constraint === 'object' ? constraint.index : constraint)
  return Object.assign(new Error(originalMessage ?? message, { cause }), {
    code: originalCode ?? code,
    ...(name !== undefined && { constraint: name }),
    ...(detail !== undefined && { detail }),
  })
}

/** Where libraries keep the error that they wrap. */
const wrappedIn = ['cause', 'driverError', 'originalError', 'meta', 'driverAdapterError']
const maxDepth = 8

/** The innermost error that has a code is the one of the server. */
function innermostWithCode(error: unknown, depth = 0): ErrorFields | undefined {
  if (typeof error !== 'object' || error === null || depth > maxDepth) return undefined
  for (const name of wrappedIn) {
    const inner = innermostWithCode((error as Record<string, unknown>)[name], depth + 1)
    if (inner !== undefined) return inner
  }
  const { code, originalCode = code } = error as ErrorFields
  return typeof originalCode === 'string' ? error : undefined
}

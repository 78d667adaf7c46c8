/**
 * The template tag that runs every statement, the same for a server, the embedded store and a caller's transaction.
 *
 * Statements are written in full, with the schema spelled `pawl.`. A schema with another name is substituted when the
 * text is sent. Values are sent as parameters; only `literal()` becomes part of the text.
 */
import { Problem } from '../../kernel/problem.ts'

export type Value =
  | string
  | number
  | boolean
  | Date
  | null
  | Literal
  | readonly (string | number | boolean | Date | null)[]

export interface Sql {
  <Row = Record<string, unknown>>(strings: TemplateStringsArray, ...values: readonly Value[]): Promise<Row[]>
  /**
   * Runs `work` in a transaction; inside a transaction, in a savepoint, which keeps the timeouts of the transaction.
   */
  begin<T>(work: (sql: Sql) => Promise<T>, bounds?: Bounds): Promise<T>
  /** Runs several statements without parameters. */
  script(text: string): Promise<void>
  /** Refuses a call inside an open transaction of the only connection: its statement would wait for itself. */
  checkTurn(): void
  readonly isTransaction: boolean
  readonly schema: string
}

/** Whether a value is the template tag itself, and not a transaction of another library. */
export function isSql(value: unknown): value is Sql {
  return typeof value === 'function' && 'script' in value && 'begin' in value && 'schema' in value
}

/** The interface to a database. Rows are arrays in the order of `fields`. */
export interface Driver {
  readonly isTransaction: boolean
  /** Throws if the caller is inside an open transaction of the only connection. */
  checkTurn(): void
  query(text: string, values: readonly (string | null)[]): Promise<{ fields: readonly string[]; rows: unknown[][] }>
  script(text: string): Promise<void>
  begin<T>(work: (driver: Driver) => Promise<T>, bounds?: Bounds): Promise<T>
}

/** Timeouts of a transaction and its statements, where they differ from the defaults. */
export interface Bounds {
  /** Limit for one statement. */
  readonly statementSeconds?: number
  /** Limit for waiting for a row that another transaction has locked. */
  readonly lockSeconds?: number
  /** Limit for a transaction without a running statement. */
  readonly idleSeconds?: number
}

export interface Literal {
  readonly literal: string
}

/**
 * Text that becomes part of the statement, such as states from a lifecycle table: a partial index matches only
 * literals.
 */
export function literal(text: string): Literal {
  return { literal: text }
}

/** A list of words for `in (…)`. A state sent as a parameter can lose its partial index. */
export function inList(words: readonly string[]): Literal {
  return literal(words.map(word => `'${word}'`).join(', '))
}

/** An array of ids or numbers, none of them null. They need no quotes, and joining them at once is faster. */
export function list(values: readonly (string | number)[]): string {
  return `{${values.join(',')}}`
}

export function json(value: unknown): string | null {
  return value === undefined || value === null ? null : JSON.stringify(value)
}

export function makeSql(driver: Driver, schema: string): Sql {
  const rename = (text: string) => (schema === 'pawl' ? text : text.replace(/\bpawl\./g, `"${schema}".`))

  const run = async <Row>(strings: TemplateStringsArray, ...values: readonly Value[]): Promise<Row[]> => {
    const parts = withoutComments(strings)
    let text = parts[0]!
    const sent: (string | null)[] = []
    for (const [index, value] of values.entries()) {
      if (isLiteral(value)) text += value.literal
      else text += `$${sent.push(encode(value))}`
      text += parts[index + 1]!
    }
    const { fields, rows } = await driver.query(rename(text), sent)
    return shape<Row>(fields, rows)
  }
  return Object.assign(run, {
    checkTurn: () => driver.checkTurn(),
    isTransaction: driver.isTransaction,
    schema,
    begin: <T>(work: (sql: Sql) => Promise<T>, bounds?: Bounds) =>
      driver.begin(inner => work(makeSql(inner, schema)), bounds),
    script: (text: string) => driver.script(rename(text)),
  })
}

const partsBySource = new WeakMap<TemplateStringsArray, readonly string[]>()

/**
 * Removes the lines that hold only a comment: a statement that is not prepared is sent in full each time. A comment
 * must not contain a value, and no line of a quoted string may begin with `-- `.
 */
function withoutComments(strings: TemplateStringsArray): readonly string[] {
  let parts = partsBySource.get(strings)
  if (parts === undefined) {
    parts = strings.map(part => part.replace(/\n *-- .*(?=\n)/g, ''))
    partsBySource.set(strings, parts)
  }
  return parts
}

/** Values are sent as text, so that every driver sends the same. */
export function encode(value: Exclude<Value, Literal>): string | null {
  if (value === null) return null
  if (Array.isArray(value)) return `{${value.map(encodeElement).join(',')}}`
  return value instanceof Date ? value.toISOString() : String(value)
}

function encodeElement(value: string | number | boolean | Date | null): string {
  if (value === null) return 'NULL'
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  const text = value instanceof Date ? value.toISOString() : value
  return `"${/["\\]/.test(text) ? text.replace(/["\\]/g, '\\$&') : text}"`
}

function isLiteral(value: Value): value is Literal {
  return typeof value === 'object' && value !== null && 'literal' in value
}

const camelNames = new Map<string, string>()

function camel(name: string): string {
  const known = camelNames.get(name)
  if (known !== undefined) return known
  const made = name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
  camelNames.set(name, made)
  return made
}

function shape<Row>(fields: readonly string[], rows: unknown[][]): Row[] {
  const names = fields.map(camel)
  return rows.map(row => {
    const made: Record<string, unknown> = {}
    for (let index = 0; index < names.length; index++) made[names[index]!] = row[index]
    return made as Row
  })
}

/**
 * A driver for an open transaction. `begin` sets a savepoint: if the work fails, only that part is rolled back, and the
 * owner of the transaction can continue.
 */
export function withSavepoints(statements: Pick<Driver, 'query' | 'script'>): Driver {
  let depth = 0
  const driver: Driver = {
    ...statements,
    isTransaction: true,
    checkTurn() {},
    async begin(work) {
      const name = `pawl_${++depth}`
      await driver.script(`savepoint ${name}`)
      try {
        const result = await work(driver)
        await driver.script(`release savepoint ${name}`)
        return result
      } catch (error) {
        await driver.script(`rollback to savepoint ${name}`).catch(() => {})
        throw error
      }
    },
  }
  return driver
}

/** The statements of a transaction until it ends. Its connection then belongs to others, so they are refused. */
export function untilEnd(statements: Pick<Driver, 'query' | 'script'>) {
  let hasEnded = false
  const ifOpen = async <T>(work: () => Promise<T>): Promise<T> => {
    if (hasEnded) throw new Problem('TRANSACTION_NOT_OPEN', { why: 'it was committed or rolled back' })
    return work()
  }
  return {
    statements: {
      query: (text: string, values: readonly (string | null)[]) => ifOpen(() => statements.query(text, values)),
      script: (text: string) => ifOpen(() => statements.script(text)),
    },
    end() {
      hasEnded = true
    },
  }
}

/**
 * If a statement of a transaction failed and its error was caught, PostgreSQL answers a commit with a rollback, and
 * reports no error. `tag` is the command that it has executed.
 */
export function checkCommit(tag: string | undefined): void {
  if (tag === 'ROLLBACK') throw new Problem('TRANSACTION_FAILED')
}

export interface Observer {
  /** Called with the duration of each statement, inside and outside transactions. */
  recordSeconds(seconds: number): void
  /** Called for each statement and each commit that failed. */
  recordFault(error: unknown): void
}

/** Wraps a driver so that an observer sees its durations and errors. */
export function observeDriver(driver: Driver, observer: Observer): Driver {
  const noted = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work
    } catch (error) {
      observer.recordFault(error)
      throw error
    }
  }
  const time = async <T>(work: () => Promise<T>): Promise<T> => {
    const began = performance.now()
    try {
      return await noted(work())
    } finally {
      observer.recordSeconds((performance.now() - began) / 1000)
    }
  }
  return {
    isTransaction: driver.isTransaction,
    checkTurn: () => driver.checkTurn(),
    query: (text, values) => time(() => driver.query(text, values)),
    script: text => time(() => driver.script(text)),
    begin: (work, bounds) => noted(driver.begin(inner => work(observeDriver(inner, observer)), bounds)),
  }
}

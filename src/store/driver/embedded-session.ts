/**
 * A session of the embedded store, in PostgreSQL's wire protocol. A statement is prepared at its first execution, and
 * planned once: parsing and planning one of our large statements takes several milliseconds in WebAssembly.
 */
import type {
  CommandCompleteMessage,
  DatabaseError,
  DataRowMessage,
  ReadyForQueryMessage,
  RowDescriptionMessage,
} from 'pg-protocol/dist/messages.js'
import { Parser } from 'pg-protocol/dist/parser.js'
import { serialize } from 'pg-protocol/dist/serializer.js'
import { columnParser } from './column-parsers.ts'
import { asProblem } from './store-fault.ts'

/** Sends messages to the database and returns its answer. Answers arrive in the order of the messages. */
export type Exchange = (messages: Uint8Array<ArrayBuffer>) => Promise<Uint8Array>

export interface EmbeddedSession {
  /** `before` is a statement that is sent together with this one, such as `begin`. */
  query(text: string, values: readonly (string | null)[], before?: string): Promise<Result>
  /** Runs several statements without parameters, and returns the tag of the last one, such as COMMIT. */
  script(text: string, before?: string): Promise<string | undefined>
}

interface Result {
  readonly fields: readonly string[]
  readonly rows: unknown[][]
}

/** A statement that the database knows by its name. */
interface Prepared {
  readonly name: string
  /** The database describes them once, with its first answer. */
  columns: readonly Column[]
}

interface Column {
  readonly name: string
  readonly parse: (text: string) => unknown
}

/** The database keeps each prepared statement with its plan in memory: about 300 kB for a large one. */
const maxPrepared = 250

/** After these, prepared statements may return other columns, and PostgreSQL refuses to execute them. */
const schemaChange = /\b(create|alter|drop)\b/i

export function openSession(exchange: Exchange): EmbeddedSession {
  /** By text, the least recently used first. */
  const prepared = new Map<string, Prepared>()
  let names = 0
  /** Sent with the next statement. */
  let closings: Buffer[] = []

  const forget = (text: string) => {
    const { name } = prepared.get(text)!
    prepared.delete(text)
    closings.push(serialize.close({ type: 'S', name }))
  }
  const send = (before: string | undefined, messages: readonly Buffer[]) => {
    const all = [...closings, ...(before === undefined ? [] : [serialize.query(before)]), ...messages]
    closings = []
    return exchange(concatenate(all))
  }
  const execute = async (text: string, values: readonly (string | null)[], before?: string): Promise<Answer> => {
    const known = prepared.get(text)
    const statement = known ?? { name: `pawl_${++names}`, columns: [] }
    prepared.delete(text)
    prepared.set(text, statement)
    if (prepared.size > maxPrepared) forget(prepared.keys().next().value!)
    const { name } = statement
    const answer = readAnswer(
      await send(before, [
        ...(known === undefined ? [serialize.parse({ name, text }), serialize.describe({ type: 'S', name })] : []),
        serialize.bind({ statement: name, values: values as (string | null)[] }),
        serialize.execute(),
        serialize.sync(),
      ]),
    )
    statement.columns = answer.columns ?? statement.columns
    // Its plan may be out of date, or it was never prepared. Next time it is prepared again.
    if (answer.error !== undefined && prepared.get(text) === statement) forget(text)
    return { ...answer, columns: statement.columns }
  }
  return {
    async query(text, values, before) {
      let answer = await execute(text, values, before)
      if (isStale(answer)) answer = await execute(text, values)
      if (answer.error !== undefined) throw asProblem(answer.error)
      return { fields: answer.columns!.map(column => column.name), rows: parseRows(answer.rows, answer.columns!) }
    },
    async script(text, before) {
      if (schemaChange.test(text)) for (const each of [...prepared.keys()]) forget(each)
      const { error, tag } = readAnswer(await send(before, [serialize.query(text)]))
      if (error !== undefined) throw asProblem(error)
      return tag
    },
  }
}

/**
 * Whether a prepared statement was out of date, and no transaction has failed with it: then it had no effect and can
 * be executed again.
 */
function isStale({ error, isInTransaction }: Answer): boolean {
  if (error === undefined || isInTransaction) return false
  return (
    error.code === '26000' || (error.code === '0A000' && error.message === 'cached plan must not change result type')
  )
}

interface Answer {
  /** Undefined if the database did not describe them. */
  columns?: readonly Column[]
  readonly rows: (string | null)[][]
  /** The first one. */
  error?: DatabaseError
  isInTransaction: boolean
  /** The command that was executed last. */
  tag?: string
}

function readAnswer(bytes: Uint8Array): Answer {
  const answer: Answer = { rows: [], isInTransaction: false }
  new Parser().parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), message => {
    if (message.name === 'dataRow') answer.rows.push((message as DataRowMessage).fields)
    else if (message.name === 'error') answer.error ??= message as DatabaseError
    else if (message.name === 'commandComplete') answer.tag = (message as CommandCompleteMessage).text
    else if (message.name === 'rowDescription') {
      const { fields } = message as RowDescriptionMessage
      answer.columns = fields.map(({ name, dataTypeID }) => ({ name, parse: columnParser(dataTypeID) }))
    } else if (message.name === 'readyForQuery') {
      answer.isInTransaction = (message as ReadyForQueryMessage).status !== 'I'
    }
  })
  return answer
}

function parseRows(rows: readonly (string | null)[][], columns: readonly Column[]): unknown[][] {
  for (const row of rows as unknown[][]) {
    for (let index = 0; index < row.length; index++) {
      const text = row[index]
      if (text !== null) row[index] = columns[index]!.parse(text as string)
    }
  }
  return rows as unknown[][]
}

/** In memory of its own, because it is transferred to the thread. */
function concatenate(messages: readonly Buffer[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(messages.reduce((length, message) => length + message.length, 0))
  let offset = 0
  for (const message of messages) {
    all.set(message, offset)
    offset += message.length
  }
  return all
}

/** A second transaction beside the test. It keeps its locks until it is committed. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sql } from '../../src/store/driver/sql.ts'
import { database } from './databases.ts'

export interface OpenTransaction {
  readonly tx: Sql
  /** A repeated call has no effect. */
  commit(): Promise<void>
}

export async function openTransaction(sql: Sql): Promise<OpenTransaction> {
  if (database() === 'embedded') throw new Error('the embedded store has one connection: this test needsServer()')
  let end = () => {}
  let done = Promise.resolve()
  const tx = await new Promise<Sql>((begun, failed) => {
    done = sql.begin(async inner => {
      begun(inner)
      await new Promise<void>(ended => (end = ended))
    })
    done.catch(failed)
  })
  return {
    tx,
    async commit() {
      end()
      await done
    },
  }
}

const longestSeconds = 10

/** Fails, instead of hanging, if an action waits for rows that another transaction has locked. */
export async function waitingForNobody<T>(act: () => Promise<T>): Promise<T> {
  const over = new AbortController()
  const late = async () => {
    await sleep(longestSeconds * 1000, undefined, { signal: over.signal })
    throw new Error('it waits for rows that another transaction holds')
  }
  try {
    return await Promise.race([act(), late()])
  } finally {
    over.abort()
  }
}

/** Runs `work` while another transaction holds row locks. They are released even if it fails. */
export async function whileLocked<T>(sql: Sql, lock: (tx: Sql) => Promise<unknown>, act: () => Promise<T>): Promise<T> {
  const other = await openTransaction(sql)
  try {
    await lock(other.tx)
    return await waitingForNobody(act)
  } finally {
    await other.commit()
  }
}

export function lockTask(id: string): (tx: Sql) => Promise<unknown> {
  return tx => tx`select from pawl.task where id = ${id}::uuid for update`
}

import { withSavepoints } from './savepoints.ts'
import type { Driver } from './sql.ts'

/** The least that a caller's transaction must offer; clients of `pg` and transactions of PGlite do. */
export interface CallerClient {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>
}

/**
 * Statements on a caller's client, in the caller's transaction. It commits or rolls back when the caller does; a call
 * of ours that fails is undone to a savepoint, so the caller can go on.
 */
export function callerDriver(client: CallerClient): Driver {
  return withSavepoints({
    async query(text, values) {
      const { rows } = await client.query(text, [...values])
      const fields = Object.keys((rows[0] as object | undefined) ?? {})
      return { fields, rows: rows.map(row => fields.map(field => (row as Record<string, unknown>)[field])) }
    },
    script: async text => void (await client.query(text, [])),
  })
}

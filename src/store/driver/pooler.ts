/**
 * A pooler such as PgBouncer in transaction mode hands each transaction to whichever server connection is free. What is set
 * for a session there stays behind for other applications, and a statement prepared on one connection is unknown on the
 * next. So behind a pooler every statement runs in a transaction that sets what it needs for itself, and no statement is
 * named.
 */
import type pg from 'pg'

/** A pooler tells its clients a process id that it made up; the server knows the real one. */
export async function isBehindPooler(client: pg.ClientBase, ask: (text: string) => Promise<{ rows: unknown[] }>) {
  const told = (client as unknown as { processID: number | null }).processID
  const { rows } = await ask('select pg_backend_pid() as pid')
  return (rows[0] as { pid: number }).pid !== told
}

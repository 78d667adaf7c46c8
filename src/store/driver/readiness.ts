/** Checks whether the store accepts writes. The answer comes within a second, whatever the store does. */
import { Problem } from '../../kernel/problem.ts'
import type { Sql } from './sql.ts'
import { storeFault } from './store-fault.ts'

const deadlineSeconds = 1

export type Readiness = ReturnType<typeof makeReadiness>

export function makeReadiness() {
  // On a full disk, small writes still fit into existing pages, so only a failed write shows that it is full. From then
  // on each check writes something that needs new space, until that succeeds.
  let mayBeFull = false
  let running: Promise<void> | undefined
  const probe = async (sql: Sql) => {
    const needsSpace = mayBeFull
    await sql.begin(tx => tryTransaction(tx, needsSpace), { statementSeconds: 1, lockSeconds: 1 })
    if (needsSpace) mayBeFull = false
  }
  return {
    /** Called for each statement that failed. */
    recordFault(error: unknown): void {
      if (storeFault(error) === 'full') mayBeFull = true
    },
    /**
     * Resolves if the store accepts writes, else throws the problem. If the store has only one connection, the check
     * may have to wait for a transaction of ours, so a timeout there is not an error.
     */
    async check(sql: Sql, isOnlyConnection: boolean): Promise<void> {
      // Concurrent callers share one check, so that hanging checks do not pile up.
      running ??= probe(sql).finally(() => {
        running = undefined
      })
      await withinDeadline(running, isOnlyConnection && !mayBeFull)
    },
  }
}

async function tryTransaction(tx: Sql, needsSpace: boolean): Promise<void> {
  const [row] = await tx<{ isReadOnly: boolean; hasTemp: boolean }>`
    select pg_is_in_recovery() or current_setting('transaction_read_only')::boolean as is_read_only,
           has_database_privilege(current_database(), 'temporary') as has_temp`
  if (row!.isReadOnly) throw new Problem('STORE_READ_ONLY', { why: 'the database is a standby, or was set read-only' })
  // A role without the right to create temporary tables cannot check this. The next write will show it.
  if (!needsSpace || !row!.hasTemp) return
  await tx.script(
    "create temp table pawl_space on commit drop as select repeat('x', 1000) from generate_series(1, 250)",
  )
}

async function withinDeadline(work: Promise<void>, mayBeLate: boolean): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve, reject) => {
    timer = setTimeout(() => {
      if (mayBeLate) resolve()
      else reject(new Problem('STORE_UNAVAILABLE', { why: `no answer within ${deadlineSeconds} s` }))
    }, deadlineSeconds * 1000)
  })
  try {
    await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

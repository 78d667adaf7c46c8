/**
 * How our statements are planned. Nearly all of them touch a few rows by key in tables whose statistics are always
 * wrong (a queue that was empty when it was analyzed is full now), and for those there is one right plan: nested loops
 * over indexes, planned once. Left to itself the planner was seen to read the whole table a thousand times.
 *
 * Which side of the loop is the outer one it still decides by its statistics, and a plan that was made while the table
 * was empty would read all of it for every row of a batch. So a batch finds its tasks with `t.id = any(array[x.id])`:
 * that can be looked up in the index, but gives no reason to walk along it.
 */
import type { Sql } from './sql.ts'

export const narrowPlans = {
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_memoize: 'off',
  jit: 'off',
  plan_cache_mode: 'force_generic_plan',
}

/** For questions about everything: lists, depths, integrity. The planner is free again, for this transaction. */
export function widely<T>(sql: Sql, work: (sql: Sql) => Promise<T>): Promise<T> {
  return sql.begin(
    async tx => {
      await tx.script(`
        set local enable_seqscan = on; set local enable_hashjoin = on; set local enable_mergejoin = on;
        set local plan_cache_mode = auto`)
      return work(tx)
    },
    { statementSeconds: 120 },
  )
}

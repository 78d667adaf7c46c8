/**
 * How statements are planned. Nearly all of them touch a few rows by key, in tables whose statistics are always wrong:
 * a queue that was empty when it was analyzed is full now. For these statements there is one right plan: nested loops
 * over indexes, planned once. Without these settings the planner was seen to read a whole table a thousand times.
 *
 * The planner still chooses the outer side of a loop by its statistics, and a plan from the time when the table was
 * empty would read all of it for each row of a batch. So a batch finds its rows with `viaIndex`.
 */
import { type Literal, literal, type Sql } from './sql.ts'

export const indexPlanSettings = {
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_memoize: 'off',
  jit: 'off',
  plan_cache_mode: 'force_generic_plan',
}

/**
 * A key for joins: `t.id = ${viaIndex('x.id')}` finds rows of `t` by their index, once for each row of `x`. With a
 * plain `t.id = x.id` the planner could read all of `t` and look up `x` instead. It cannot reverse `= any(…)`.
 */
export function viaIndex(key: string): Literal {
  return literal(`any(array[${key}])`)
}

/**
 * The task of a lease, if it is still held, in a statement that reads the leases as `won (id, epoch)`. It is looked up
 * once per lease: with a join, the planner would read all tasks to find the few that are held. OFFSET 0 prevents that
 * join.
 */
export const heldTask = literal(`(
  select t.owner, t.lane_id, (select l.queue from pawl.lane l where l.id = t.lane_id) as queue from pawl.task t
   where t.id = won.id and t.epoch = won.epoch and t.lease_until is not null offset 0)`)

/**
 * Runs queries over whole tables: lists, depths, integrity. In this transaction the planner may choose any plan. It
 * plans each execution anew, because a list has one statement for all its filters, and a generic plan for any filter
 * reads everything.
 */
export function withTableScans<T>(sql: Sql, work: (sql: Sql) => Promise<T>): Promise<T> {
  return sql.begin(
    async tx => {
      await tx.script(`
        set local enable_seqscan = on; set local enable_hashjoin = on; set local enable_mergejoin = on;
        set local plan_cache_mode = force_custom_plan`)
      return work(tx)
    },
    { statementSeconds: 120 },
  )
}

/**
 * Runs a list that finds its rows through an index or a smaller table. It is planned anew for its filters, as in
 * `withTableScans`, but still with nested loops over indexes: statistics of a table may be from a time when it was
 * empty.
 */
export function withOwnPlan<T>(sql: Sql, work: (sql: Sql) => Promise<T>): Promise<T> {
  return sql.begin(
    async tx => {
      await tx.script('set local plan_cache_mode = force_custom_plan')
      return work(tx)
    },
    { statementSeconds: 120 },
  )
}

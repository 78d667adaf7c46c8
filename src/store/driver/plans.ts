/**
 * How our statements are planned. Nearly all of them touch a few rows by key in tables whose statistics are always
 * wrong (a queue that was empty when it was analyzed is full now), and for those there is one right plan: nested loops
 * over indexes, planned once. Left to itself the planner was seen to read the whole table a thousand times.
 *
 * Which side of the loop is the outer one it still decides by its statistics, and a plan that was made while the table
 * was empty would read all of it for every row of a batch. So a batch finds its rows with `lookup`.
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
 * For joins by key: `t.id = ${lookup('x.id')}` finds the rows of `t` by their index, once for each row of `x`. A plain
 * `t.id = x.id` would let the planner go through all of `t` and look up `x` instead. It cannot turn `any(…)` around.
 */
export function viaIndex(key: string): Literal {
  return literal(`any(array[${key}])`)
}

/**
 * The task of a claim, in a statement that goes through `claim` as `won (id, epoch)`, if it is still held. Looked up one
 * by one: joined, the planner would rather read all tasks for the few that are held. OFFSET 0 keeps it from joining.
 */
export const heldTask = literal(`(
  select t.owner, t.lane_id, (select l.queue from pawl.lane l where l.id = t.lane_id) as queue from pawl.task t
   where t.id = won.id and t.epoch = won.epoch and t.lease_until is not null offset 0)`)

/**
 * For questions about everything: lists, depths, integrity. The planner is free again, for this transaction. It plans each
 * time, because a list has one statement for all its filters, and a plan for any filter is a plan that reads everything.
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

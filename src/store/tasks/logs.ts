/** Log lines of task handlers. */
import { statesOf } from '../../kernel/lifecycle.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import { viaIndex } from '../driver/plans.ts'
import { inList, json, type Sql } from '../driver/sql.ts'

const held = inList(statesOf(taskLifecycle, 'held'))

export interface NewLogLine {
  readonly id: string
  readonly epoch: number
  readonly n: number
  readonly agoMs: number
  readonly level: string
  readonly message: string
  readonly facts: Record<string, unknown> | undefined
}

/**
 * Stores log lines of tasks that are held under their epoch. Lines of an ended lease are dropped, like everything that
 * its worker reports. A line that was sent before is left unchanged. Rows are inserted in the order of their keys, so
 * that two transactions with the same lines cannot deadlock.
 */
export async function writeLogLines(sql: Sql, lines: readonly NewLogLine[]): Promise<void> {
  await sql`
    insert into pawl.log (task_id, epoch, n, at, level, message, facts)
    select t.id, report.epoch, report.n, pawl.clock() - make_interval(secs => report.ago_ms / 1000), report.level,
           report.message, report.facts
      from unnest(${lines.map(({ id }) => id)}::uuid[], ${lines.map(({ epoch }) => epoch)}::int[],
                  ${lines.map(({ n }) => n)}::int[], ${lines.map(({ agoMs }) => agoMs)}::float8[],
                  ${lines.map(({ level }) => level)}::text[], ${lines.map(({ message }) => message)}::text[],
                  ${lines.map(({ facts }) => json(facts))}::json[]) as report (id, epoch, n, ago_ms, level, message, facts)
      join pawl.task t on t.id = ${viaIndex('report.id')} and t.epoch = report.epoch and t.state in (${held})
     order by t.id, report.epoch, report.n
        on conflict do nothing`
}

export interface LogLineRow extends Pick<NewLogLine, 'epoch' | 'n' | 'level' | 'message'> {
  readonly at: Date
  readonly facts: Record<string, unknown> | null
}

/** Log lines of one task after a position, attempt by attempt, in the order in which they were logged. */
export function readLogLines(
  sql: Sql,
  ask: { id: string; epoch: number | null; after: { epoch: number; n: number }; limit: number },
): Promise<LogLineRow[]> {
  return sql<LogLineRow>`
    select epoch, n, at, level, message, facts
      from pawl.log
     where task_id = ${ask.id}::uuid
       and (epoch, n) > (${ask.after.epoch}::int, ${ask.after.n}::int)
       and (${ask.epoch}::int is null or epoch = ${ask.epoch}::int)
     order by task_id, epoch, n
     limit ${ask.limit}::int`
}

/** Deletes log lines that are older than this, in batches. */
export async function deleteOldLogLines(sql: Sql, keepSeconds: number): Promise<number> {
  const gone = await sql`
    delete from pawl.log where ctid = any(array(
      select ctid from pawl.log where at < pawl.clock() - make_interval(secs => ${keepSeconds}::float8) limit 5000))
    returning 1`
  return gone.length
}

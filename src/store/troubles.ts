/** What ended badly, by what is alike. */
import type { ReasonCode } from '../kernel/decide.ts'
import type { TaskState } from '../kernel/task.ts'
import { widely } from './plans.ts'
import type { Sql } from './sql.ts'

export interface TroubleRow {
  readonly state: TaskState
  readonly reasonCode: ReasonCode | null
  readonly type: string
  readonly queue: string
  readonly message: string
  readonly count: number
  readonly oldestAt: Date
  readonly newestAt: Date
  readonly taskId: string
}

export interface TroubleFilter {
  readonly jobId: string | null
  readonly stageId: string | null
  readonly states: readonly string[]
  readonly queue: string | null
}

/** Most of a kind first; numbers and ids in messages are taken for the same. */
export function groupTroubles(sql: Sql, { jobId, stageId, states, queue }: TroubleFilter): Promise<TroubleRow[]> {
  return widely(
    sql,
    tx => tx<TroubleRow>`
    select x.state, x.reason_code, t.type, l.queue, count(*)::int as count, min(t.ended_at) as oldest_at,
           max(t.ended_at) as newest_at, (array_agg(t.id order by t.ended_at desc))[1] as task_id,
           regexp_replace(left(coalesce(t.error->>'message', ''), 300),
             '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9]+', '#', 'g') as message
      from pawl.trouble x
      join pawl.task t on t.id = x.task_id
      join pawl.lane l on l.id = t.lane_id
     where (${stageId}::uuid is null or t.stage_id = ${stageId}::uuid)
       and (${jobId}::uuid is null or t.job_id = ${jobId}::uuid)
       and (cardinality(${states}::text[]) = 0 or x.state = any(${states}::text[]))
       and (${queue}::text is null or l.queue = ${queue})
     group by x.state, x.reason_code, t.type, l.queue, message
     order by count(*) desc, newest_at desc limit 200`,
  )
}

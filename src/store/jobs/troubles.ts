/** What ended badly, by what is alike. */
import type { ReasonCode } from '../../kernel/decide.ts'
import type { TaskState } from '../../kernel/task.ts'
import { withTableScans } from '../driver/plans.ts'
import type { Sql } from '../driver/sql.ts'

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
  return withTableScans(
    sql,
    tx => tx<TroubleRow>`
    select x.state, x.reason_code, x.type, l.queue, x.gist as message, sum(x.count)::int as count,
           min(x.oldest_at) as oldest_at, max(x.newest_at) as newest_at, max(x.task_id)::uuid as task_id
      from (select state, reason_code, type, lane_id, gist, count(*) as count, min(ended_at) as oldest_at,
                   max(ended_at) as newest_at, max(task_id::text) as task_id
              from pawl.trouble
             where (${stageId}::uuid is null or stage_id = ${stageId}::uuid)
               and (${jobId}::uuid is null or job_id = ${jobId}::uuid)
               and (cardinality(${states}::text[]) = 0 or state = any(${states}::text[]))
             group by state, reason_code, type, lane_id, gist) as x
      join pawl.lane l on l.id = x.lane_id
     where ${queue}::text is null or l.queue = ${queue}
     group by x.state, x.reason_code, x.type, l.queue, x.gist
     order by count desc, newest_at desc limit 200`,
  )
}

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
    with told as not materialized (
      select task_id, state, reason_code, type, lane_id, job_id, stage_id, gist, ended_at
        from pawl.trouble where type is not null
       union all
      select t.id, x.state, x.reason_code, t.type, t.lane_id, t.job_id, t.stage_id, pawl.gist(t.error->>'message'), t.ended_at
        from pawl.trouble x join pawl.task t on t.id = x.task_id where x.type is null
    )
    select x.state, x.reason_code, x.type, l.queue, x.gist as message, sum(x.count)::int as count,
           min(x.oldest_at) as oldest_at, max(x.newest_at) as newest_at, max(x.task_id)::uuid as task_id
      from (select state, reason_code, type, lane_id, gist, count(*) as count, min(ended_at) as oldest_at,
                   max(ended_at) as newest_at, max(task_id::text) as task_id
              from told
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

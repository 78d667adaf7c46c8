/** Counts jobs, stages and tasks by state, for metrics. Each query counts all rows that exist. */
import type { JobState } from '../../kernel/job.ts'
import type { StageState } from '../../kernel/stage.ts'
import type { TaskState } from '../../kernel/task.ts'
import { withTableScans } from '../driver/plans.ts'
import type { Sql } from '../driver/sql.ts'
import { calledOffFrom } from '../jobs/read-jobs.ts'

export interface JobsInState {
  readonly state: JobState
  readonly endsAs: string | null
  readonly count: number
}

export interface StagesInState {
  readonly queue: string
  readonly state: StageState
  readonly endsAs: string | null
  readonly gated: boolean
  readonly held: boolean
  readonly calledOffFrom: StageState | null
  readonly count: number
}

export interface TasksInState {
  readonly queue: string
  /** The priority of their job, or their own if they are stand-alone, as the lower bound of its band. */
  readonly priority: number
  readonly state: TaskState
  /** They belong to a stage. */
  readonly staged: boolean
  readonly count: number
}

export interface CountsByState {
  readonly jobs: readonly JobsInState[]
  readonly stages: readonly StagesInState[]
  readonly tasks: readonly TasksInState[]
}

export interface CountedNames {
  /** How many queues are named: those with the most tasks. */
  readonly most: number
  /** The name for all other queues together. */
  readonly others: string
  /** Lower bounds of the bands, ascending. A priority is reported as the bound of its band. */
  readonly priorities: readonly number[]
}

export function countByState(sql: Sql, { most, others, priorities }: CountedNames): Promise<CountsByState> {
  return withTableScans(sql, async tx => {
    const jobs = await tx<JobsInState>`
      select state, ends_as, count(*)::float8 as count from pawl.job where visible group by 1, 2`
    const tasks = await tx<TasksInState>`
      with counted as materialized (
        select l.queue, (${priorities}::int[])[width_bucket(coalesce(j.priority, l.priority), ${priorities}::int[])] as priority,
               t.state, s.id is not null as staged, count(*)::float8 as count
          from pawl.task t join pawl.lane l on l.id = t.lane_id
          left join pawl.stage s on s.id = t.stage_id left join pawl.job j on j.id = t.job_id
         where coalesce(j.visible, true) and coalesce(s.kind, 'work') = 'work'
         group by 1, 2, 3, 4
      ), chosen as (
        select queue from counted where queue <> ${others}
         group by queue order by sum(count) desc, queue limit ${most}::int
      )
      select coalesce(chosen.queue, ${others}) as queue, priority, state, staged, sum(count) as count
        from counted left join chosen on chosen.queue = counted.queue
       group by 1, 2, 3, 4`
    // Queues that are named in the counts of tasks are named here as well.
    const named = [...new Set(tasks.map(({ queue }) => queue))]
    const stages = await tx<StagesInState>`
      with counted as materialized (
        select l.queue, s.state, s.ends_as, s.plan->>'gate' is not null as gated, s.held,
               ${calledOffFrom} as called_off_from, count(*)::float8 as count
          from pawl.stage s join pawl.lane l on l.id = s.lane_id join pawl.job j on j.id = s.job_id
         where j.visible and s.kind = 'work'
         group by 1, 2, 3, 4, 5, 6
      ), chosen as (
        select queue from counted where queue <> ${others}
         group by queue order by queue = any(${named}::text[]) desc, sum(count) desc, queue limit ${most}::int
      )
      select coalesce(chosen.queue, ${others}) as queue, state, ends_as, gated, held, called_off_from, sum(count) as count
        from counted left join chosen on chosen.queue = counted.queue
       group by 1, 2, 3, 4, 5, 6`
    return { jobs, stages, tasks }
  })
}

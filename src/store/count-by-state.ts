/** How many jobs, stages and tasks there are, by their states: for metrics. Each counts everything that is kept. */
import type { JobState } from '../kernel/job.ts'
import type { StageState } from '../kernel/stage.ts'
import type { TaskState } from '../kernel/task.ts'
import { calledOffFrom } from './job-read.ts'
import { widely } from './plans.ts'
import type { Sql } from './sql.ts'

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
  /** Of their job, or their own if they stand alone. */
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

export function countByState(sql: Sql): Promise<CountsByState> {
  return widely(sql, async tx => ({
    jobs: await tx<JobsInState>`
      select state, ends_as, count(*)::float8 as count from pawl.job where visible group by 1, 2`,
    stages: await tx<StagesInState>`
      select l.queue, s.state, s.ends_as, s.plan->>'gate' is not null as gated, s.held,
             ${calledOffFrom} as called_off_from, count(*)::float8 as count
        from pawl.stage s join pawl.lane l on l.id = s.lane_id join pawl.job j on j.id = s.job_id
       where j.visible and s.kind = 'work'
       group by 1, 2, 3, 4, 5, 6`,
    tasks: await tx<TasksInState>`
      select l.queue, coalesce(j.priority, l.priority) as priority, t.state, s.id is not null as staged,
             count(*)::float8 as count
        from pawl.task t join pawl.lane l on l.id = t.lane_id
        left join pawl.stage s on s.id = t.stage_id left join pawl.job j on j.id = t.job_id
       where coalesce(j.visible, true) and coalesce(s.kind, 'work') = 'work'
       group by 1, 2, 3, 4`,
  }))
}

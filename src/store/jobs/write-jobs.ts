/**
 * Writes the result of driving a job: transitions of jobs and stages with their events, and the changes that follow for
 * lanes and blocked tasks.
 */
import { type JobState, jobLifecycle } from '../../kernel/job.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { type StageState, stageLifecycle } from '../../kernel/stage.ts'
import { nextTime } from '../driver/clock.ts'
import { viaIndex } from '../driver/plans.ts'
import { inList, json, list, literal, type Sql } from '../driver/sql.ts'
import { tasksPerPlace } from '../tasks/enqueue.ts'
import { stagesPerStatement } from './new-job.ts'

/** One transition of a job or stage, or a request that must be provable (then `to` is the current state). */
export interface Step {
  readonly to: JobState | StageState
  readonly type?: string
  readonly cause: string
  readonly actor?: string
  readonly payload?: Record<string, unknown>
}

/** The changes to one row: its steps, and other columns. */
export interface Change {
  readonly id: string
  readonly seq: number
  readonly steps: readonly Step[]
  readonly opensRound: boolean
  readonly columns: Readonly<Record<string, unknown>>
}

/** Blocked tasks of a stage to release: those after `after`, up to `upTo`. Null means no bound. */
export interface Release {
  readonly stageId: string
  readonly after: string | null
  readonly upTo: string | null
}

export interface Writing {
  readonly stages: readonly Change[]
  readonly jobs: readonly Change[]
  readonly releases: readonly Release[]
  /** Lanes to open and to close. */
  readonly lanes: readonly { readonly id: number; readonly open: boolean }[]
  /**
   * Lanes of stages that have ended. If a task was cancelled while a claim had its row of `due` locked, the row stayed
   * behind and is deleted now. A row that a claim has locked now is skipped, because nobody will claim from it again.
   */
  readonly ended: readonly number[]
}

export interface Written {
  /** How many tasks of the written stages are still blocked. */
  readonly blocked: ReadonlyMap<string, number>
  /** Queues in which a lane opened. */
  readonly queues: readonly string[]
}

/**
 * Writes everything, usually in one statement. Each row must be unchanged since it was locked. The database accepts one
 * transition of a row at a time, so further steps of a row follow in separate statements.
 */
export async function writeJobs(sql: Sql, writing: Writing): Promise<Written> {
  const written = await writeInParts(sql, writing)
  let stages = withoutFirstStep(writing.stages)
  let jobs = withoutFirstStep(writing.jobs)
  while (stages.length + jobs.length > 0) {
    await writeInParts(sql, { stages, jobs, releases: [], lanes: [], ended: [] })
    stages = withoutFirstStep(stages)
    jobs = withoutFirstStep(jobs)
  }
  return written
}

/**
 * Writes many stages in several statements. Lanes are part of the first, because locks are taken in the order lane,
 * task.
 */
async function writeInParts(sql: Sql, writing: Writing): Promise<Written> {
  const { stages, releases } = writing
  if (stages.length <= stagesPerStatement) return writeFirstSteps(sql, writing)
  const blocked = new Map<string, number>()
  const queues: string[] = []
  for (let from = 0; from < stages.length; from += stagesPerStatement) {
    const some = stages.slice(from, from + stagesPerStatement)
    const ids = new Set(some.map(({ id }) => id))
    const mine = releases.filter(({ stageId }) => ids.has(stageId))
    const rest = from === 0 ? writing : { jobs: [], lanes: [], ended: [] }
    const written = await writeFirstSteps(sql, { ...rest, stages: some, releases: mine })
    for (const [id, tasks] of written.blocked) blocked.set(id, tasks)
    queues.push(...written.queues)
  }
  return { blocked, queues }
}

const withoutFirstStep = (changes: readonly Change[]): Change[] =>
  changes.flatMap(({ id, seq, steps }) =>
    steps.length > 1 ? [{ id, seq: seq + 1, steps: steps.slice(1), opensRound: false, columns: {} }] : [],
  )

/** The columns that may be changed, and their types when read from JSON. */
const jobColumns = {
  open: 'text',
  ends_as: 'text',
  ends_cause: 'text',
  error: 'jsonb',
  begun: 'boolean',
  compensated: 'boolean',
  visible: 'boolean',
  priority: 'int',
  metadata: 'jsonb',
  deadline_at: 'timestamptz',
  progress_at: 'timestamptz',
  condition_steps: 'int',
}
const stageColumns = {
  open: 'text',
  ends_as: 'text',
  ends_cause: 'text',
  ends_hard: 'boolean',
  error: 'jsonb',
  total: 'int',
  good: 'int',
  bad: 'int',
  partial: 'int',
  skipped: 'int',
  begun: 'boolean',
  bad_before: 'int',
  ended_in: 'int',
  held: 'boolean',
  approvals: 'jsonb',
  gate_until: 'timestamptz',
  opening: 'text',
  errand: 'text',
  errand_at: 'uuid',
  called_off: 'boolean',
  fan: 'json',
  fanned: 'int',
  listing: 'text',
  list_at: 'jsonb',
  metadata: 'jsonb',
}

function columnUpdates(columns: Readonly<Record<string, string>>): string {
  const set = Object.entries(columns).map(([name, type]) => {
    const value = type.startsWith('json') ? `nullif(c.x->'${name}', 'null')::${type}` : `(c.x->>'${name}')::${type}`
    return `${name} = case when c.x ? '${name}' then ${value} else e.${name} end`
  })
  return set.join(', ')
}

/** The columns that every transition sets in row `e`, from its change `c`. */
const moveUpdates = (finals: readonly string[]) => `
  state    = coalesce(c.step->>'to', e.state),
  seq      = e.seq + case when c.step is null then 0 else 1 end,
  round    = e.round + case when c.opens_round then 1 else 0 end,
  ended_at = case when coalesce(c.step->>'to', e.state) in (${inList(finals).literal})
                  then coalesce(e.ended_at, ${nextTime('e').literal}) end,
  history  = case when c.step is null then e.history else e.history || row(
               ${nextTime('e').literal}, 0, c.step->>'to', c.step->>'type', c.step->>'actor',
               c.step->>'cause', nullif(c.step->'payload', '{}'))::pawl.step end`

const jobUpdates = literal(`${moveUpdates(statesOf(jobLifecycle, 'final'))}, ${columnUpdates(jobColumns)}`)
const stageUpdates = literal(`${moveUpdates(statesOf(stageLifecycle, 'final'))}, ${columnUpdates(stageColumns)}`)
const [lowest, highest] = ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff']

/**
 * Released tasks share rows of `due`, like tasks that were queued together. `blocked` is reduced by the tasks that were
 * actually released: a task that was ended in the meantime is counted by the transaction that ended it.
 *
 * `offset 0` keeps the planner from reversing the join: to find that nothing is to be released, it would read every
 * task of every stage.
 */
async function writeFirstSteps(sql: Sql, { stages, jobs, releases, lanes, ended }: Writing): Promise<Written> {
  const [done] = await sql<{ blocked: Record<string, number> | null; jobs: number; queues: string[] | null }>`
    with
    -- One row per stage to write: its first step, if it moves, and the columns to set (x).
    stage_change as materialized (
      select * from unnest(${list(stages.map(({ id }) => id))}::uuid[], ${list(stages.map(({ seq }) => seq))}::int[],
                           ${stages.map(({ opensRound }) => opensRound)}::boolean[], ${stages.map(stepOf)}::jsonb[],
                           ${stages.map(({ columns }) => json(columns))}::jsonb[]) as c (id, seq, opens_round, step, x)
    ),
    -- The same for jobs.
    job_change as materialized (
      select * from unnest(${list(jobs.map(({ id }) => id))}::uuid[], ${list(jobs.map(({ seq }) => seq))}::int[],
                           ${jobs.map(({ opensRound }) => opensRound)}::boolean[], ${jobs.map(stepOf)}::jsonb[],
                           ${jobs.map(({ columns }) => json(columns))}::jsonb[]) as c (id, seq, opens_round, step, x)
    ),
    -- Blocked tasks become queued. Tasks that ended in the meantime are not counted here.
    released as (
      update pawl.task t
         set state   = 'queued',
             seq     = t.seq + 1,
             run_at  = greatest(pawl.clock(), t.run_at),
             history = t.history || row(${nextTime('t')}, t.epoch, 'queued', null,
                                        'engine', 'stage_opened', null)::pawl.step
        from unnest(${list(releases.map(({ stageId }) => stageId))}::uuid[],
                    ${list(releases.map(({ after }) => after ?? lowest))}::uuid[],
                    ${list(releases.map(({ upTo }) => upTo ?? highest))}::uuid[]) as r (stage_id, after, up_to)
       cross join lateral (
               select id from pawl.task
                where stage_id = r.stage_id and id > r.after and id <= r.up_to and state = 'blocked'
               offset 0) as b
       where t.id = ${viaIndex('b.id')} and t.state = 'blocked'
      returning t.id, t.stage_id, t.lane_id, t.run_at, t.type, t.seq
    ),
    -- How many tasks of each stage are no longer blocked.
    released_count as (
      select stage_id, count(*)::int as tasks from released group by stage_id
    ),
    -- Released tasks in groups that share a row of due.
    grouped as (
      select *, (row_number() over (partition by lane_id, type order by id) - 1) / ${tasksPerPlace}::int as place
        from released
    ),
    -- The groups enter the queue.
    due_entry as (
      insert into pawl.due (lane_id, run_at, id, ids, type)
      select lane_id, run_at, (array_agg(id order by id))[1], array_agg(id order by id), type
        from grouped group by lane_id, run_at, type, place
    ),
    -- The stages move. A stage without a step only gets new columns.
    moved_stage as (
      update pawl.stage e
         set blocked = case when c.x ? 'blocked' then (c.x->>'blocked')::int else e.blocked end
                       - coalesce(released_count.tasks, 0),
             ${stageUpdates}
        from stage_change c left join released_count on released_count.stage_id = c.id
       where e.id = ${viaIndex('c.id')} and e.seq = c.seq
      returning e.id, e.seq, e.blocked, c.step is not null as is_move
    ),
    -- The jobs move.
    moved_job as (
      update pawl.job e set ${jobUpdates} from job_change c where e.id = ${viaIndex('c.id')} and e.seq = c.seq
      returning e.id, e.seq, c.step is not null as is_move
    ),
    -- Lanes open and close. The result names the queues of those that opened.
    set_lane as (
      update pawl.lane l set open = w.open
        from unnest(${list(lanes.map(({ id }) => id))}::int[], ${lanes.map(({ open }) => open)}::boolean[]) as w (id, open)
       where l.id = ${viaIndex('w.id')} and l.open <> w.open
      returning case when l.open then l.queue end as queue
    ),
    -- Lanes of ended stages are emptied. Rows that a claim has locked are left to it.
    emptied_lane as (
      delete from pawl.due where ctid = any(array(
        select ctid from pawl.due where lane_id = any(${list(ended)}::int[]) for update skip locked))
    ),
    -- Adds all transitions to the feed.
    feed_entry as (
      insert into pawl.change (entity, ids, seqs)
      select 'stage', array_agg(id), array_agg(seq) from moved_stage where is_move having count(*) > 0
       union all
      select 'job', array_agg(id), array_agg(seq) from moved_job where is_move having count(*) > 0
       union all
      select 'task', array_agg(id), array_agg(seq) from released having count(*) > 0
    )
    select (select json_object_agg(id, blocked) from moved_stage) as blocked,
           (select count(*)::int from moved_job) as jobs,
           (select array_agg(distinct queue) from set_lane where queue is not null) as queues`
  const blocked = new Map(Object.entries(done!.blocked ?? {}))
  if (blocked.size !== stages.length) throw new Error("a stage moved under its job's lock")
  if (done!.jobs !== jobs.length) throw new Error('a job moved under its lock')
  return { blocked, queues: done!.queues ?? [] }
}

const stepOf = ({ steps: [step] }: Change): string | null => (step === undefined ? null : json(step))

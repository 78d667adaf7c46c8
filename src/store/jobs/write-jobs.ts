/**
 * Writes the result of advancing a job: transitions of jobs and stages with their events, and the changes that follow for
 * lanes and blocked tasks.
 */
import { type JobState, jobLifecycle } from '../../kernel/job.ts'
import { compoundEdges, statesOf } from '../../kernel/lifecycle.ts'
import { type StageState, stageLifecycle } from '../../kernel/stage.ts'
import { nextTime } from '../driver/clock.ts'
import { viaIndex } from '../driver/plans.ts'
import { inList, json, list, literal, type Sql } from '../driver/sql.ts'
import { longTaskBytes, tasksPerPlace } from '../tasks/enqueue.ts'
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
  /** The state before the first step. */
  readonly from: JobState | StageState
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
 * transition of a row at a time, or two if its lifecycle allows the pair, so further steps of a row follow in separate
 * statements.
 */
export async function writeJobs(sql: Sql, writing: Writing): Promise<Written> {
  const written = await writeInParts(sql, writing)
  let stages = withoutWrittenSteps(writing.stages)
  let jobs = withoutWrittenSteps(writing.jobs)
  while (stages.length + jobs.length > 0) {
    await writeInParts(sql, { stages, jobs, releases: [], lanes: [], ended: [] })
    stages = withoutWrittenSteps(stages)
    jobs = withoutWrittenSteps(jobs)
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

const pairOf = ({ from, via, to }: { from: string; via: string; to: string }) => `${from} ${via} ${to}`
const pairs = new Set([...compoundEdges(jobLifecycle), ...compoundEdges(stageLifecycle)].map(pairOf))

/** The steps of a row that one statement writes: the first, and the second if the lifecycle allows the pair. */
function stepsAtOnce({ from, steps, opensRound }: Change): readonly Step[] {
  const [first, second] = steps
  if (first === undefined || second === undefined || opensRound) return steps.slice(0, 1)
  return steps.slice(0, pairs.has(pairOf({ from, via: first.to, to: second.to })) ? 2 : 1)
}

function withoutWrittenSteps(changes: readonly Change[]): Change[] {
  return changes.flatMap(change => {
    const { id, seq, steps } = change
    const written = stepsAtOnce(change)
    if (steps.length === written.length) return []
    const from = written.at(-1)!.to
    const rest = { from, steps: steps.slice(written.length), opensRound: false, columns: {} }
    return [{ id, seq: seq + written.length, ...rest }]
  })
}

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

const historyStep = (step: string) => `row(
               ${nextTime('e').literal}, 0, ${step}->>'to', ${step}->>'type', ${step}->>'actor',
               ${step}->>'cause', nullif(${step}->'payload', '{}'))::pawl.step`

/** The columns that every transition sets in row `e`, from its change `c`. */
const moveUpdates = (finals: readonly string[]) => `
  state    = coalesce(c.second->>'to', c.step->>'to', e.state),
  seq      = e.seq + num_nonnulls(c.step, c.second),
  round    = e.round + case when c.opens_round then 1 else 0 end,
  ended_at = case when coalesce(c.second->>'to', c.step->>'to', e.state) in (${inList(finals).literal})
                  then coalesce(e.ended_at, ${nextTime('e').literal}) end,
  history  = case when c.step is null then e.history
                  when c.second is null then e.history || ${historyStep('c.step')}
                  else e.history || array[${historyStep('c.step')}, ${historyStep('c.second')}] end`

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
    -- One row per stage to write: its first step or two, if it moves, and the columns to set (x).
    stage_change as materialized (
      select * from unnest(${list(stages.map(({ id }) => id))}::uuid[], ${list(stages.map(({ seq }) => seq))}::int[],
                           ${stages.map(({ opensRound }) => opensRound)}::boolean[], ${stages.map(firstStep)}::jsonb[],
                           ${stages.map(secondStep)}::jsonb[],
                           ${stages.map(({ columns }) => json(columns))}::jsonb[]) as c (id, seq, opens_round, step, second, x)
    ),
    -- The same for jobs.
    job_change as materialized (
      select * from unnest(${list(jobs.map(({ id }) => id))}::uuid[], ${list(jobs.map(({ seq }) => seq))}::int[],
                           ${jobs.map(({ opensRound }) => opensRound)}::boolean[], ${jobs.map(firstStep)}::jsonb[],
                           ${jobs.map(secondStep)}::jsonb[],
                           ${jobs.map(({ columns }) => json(columns))}::jsonb[]) as c (id, seq, opens_round, step, second, x)
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
      returning t.id, t.stage_id, t.lane_id, t.run_at, t.type, t.seq, pawl.estimated_bytes(t.payload) as bytes
    ),
    -- How many tasks of each stage are no longer blocked.
    released_count as (
      select stage_id, count(*)::int as tasks from released group by stage_id
    ),
    -- Released tasks in groups that share a row of due. A long task is a group of its own, with a negative number.
    grouped as (
      select *, case when bytes > ${longTaskBytes} then -row_number() over same_lane
                     else (row_number() over same_lane - 1) / ${tasksPerPlace}::int end as place
        from released
      window same_lane as (partition by lane_id, type, bytes > ${longTaskBytes} order by id)
    ),
    -- The groups enter the queue.
    due_entry as (
      insert into pawl.due (lane_id, run_at, id, ids, type, bytes)
      select lane_id, run_at, (array_agg(id order by id))[1], array_agg(id order by id), type,
             case when place < 0 then max(bytes) end
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
      returning e.id, c.seq as before, e.seq, e.blocked
    ),
    -- The jobs move.
    moved_job as (
      update pawl.job e set ${jobUpdates} from job_change c where e.id = ${viaIndex('c.id')} and e.seq = c.seq
      returning e.id, c.seq as before, e.seq
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
      select 'stage', array_agg(id), array_agg(n)
        from moved_stage cross join lateral generate_series(before + 1, seq) as n having count(*) > 0
       union all
      select 'job', array_agg(id), array_agg(n)
        from moved_job cross join lateral generate_series(before + 1, seq) as n having count(*) > 0
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

const firstStep = (change: Change) => json(stepsAtOnce(change)[0])
const secondStep = (change: Change) => json(stepsAtOnce(change)[1])

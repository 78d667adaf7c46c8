/** Rows of jobs and stages. Whoever changes one holds the job's lock, so a job is changed by one at a time. */
import type { JobFacts, StageFacts } from '../kernel/advance.ts'
import { type JobState, jobLifecycle } from '../kernel/job.ts'
import { statesOf } from '../kernel/lifecycle.ts'
import type { JobPlan } from '../kernel/plan.ts'
import { type StageState, stageLifecycle } from '../kernel/stage.ts'
import { among, json, literal, type Sql } from './sql.ts'

export interface JobRow extends JobFacts {
  readonly id: string
  readonly name: string
  readonly seq: number
  readonly round: number
  readonly priority: number
  readonly input: unknown
  readonly plan: Omit<JobPlan, 'stages' | 'input'>
  readonly visible: boolean
  readonly correlationId: string | null
  readonly traceparent: string | null
  readonly metadata: Record<string, unknown> | null
  readonly error: { message: string } | null
  readonly hasErrand: boolean
  /** The database's clock when it was locked. */
  readonly now: Date
}

export interface StageRow extends StageFacts {
  readonly jobId: string
  readonly ordinal: number
  readonly seq: number
  readonly round: number
  readonly laneId: number | null
  readonly undoes: string | null
  readonly errand: Errand | null
  readonly errandAt: string | null
  readonly endsHard: boolean
  readonly fanned: number
  readonly given: readonly Approval[]
}

export type Errand = 'release' | 'fan out' | 'pass over' | 'call off' | 'revive' | 'reopen'

export interface Approval {
  readonly by: string
  readonly comment?: string
  readonly data?: unknown
}

/** Locks the job, which locks its stages too: nobody writes to a stage without its job. */
export async function lockJob(sql: Sql, id: string): Promise<JobRow | undefined> {
  const [row] = await sql<JobRow>`
    select *, pawl.clock() as now, exists (select from pawl.errand where job_id = job.id) as has_errand
      from pawl.job where id = ${id}::uuid for update`
  return row
}

/** What a stage's counts are after new ones were added. */
export type Counts = Pick<StageRow, 'id' | 'total' | 'good' | 'bad' | 'partial' | 'undoable' | 'begun' | 'blocked'> & {
  /** A task has started since they were last added up. */
  readonly justBegun: boolean
}

/** Adds up what settles have appended to the counts of a locked job's stages; returns those that changed. */
export function addUp(sql: Sql, jobId: string): Promise<Counts[]> {
  return sql<Counts>`
    with folded as (
      delete from pawl.tally where job_id = ${jobId}::uuid returning *
    ), sums as materialized (
      select stage_id, sum(total)::int as total, sum(good)::int as good, sum(bad)::int as bad,
             sum(partial)::int as partial, sum(skipped)::int as skipped, sum(begun)::int as begun,
             sum(blocked)::int as blocked
        from folded group by stage_id
    ), progressed as (
      update pawl.job set progress_at = pawl.clock(), begun = begun or exists (select from sums where sums.begun > 0)
       where id = ${jobId}::uuid and exists (select from sums)
    )
    update pawl.stage s
       set total = s.total + sums.total, good = s.good + sums.good, bad = s.bad + sums.bad,
           partial = s.partial + sums.partial, skipped = s.skipped + sums.skipped, begun = s.begun or sums.begun > 0,
           blocked = s.blocked + sums.blocked
      from sums where s.id = any(array[sums.stage_id])
    returning s.id, s.total, s.good, s.bad, s.partial, s.good - s.skipped as undoable, s.begun, s.blocked,
              sums.begun > 0 as just_begun`
}

/** The stages of a job, in their order. */
export async function readStages(sql: Sql, jobId: string): Promise<StageRow[]> {
  const rows = await sql<Omit<StageRow, 'plan'>>`
    select s.id, s.job_id, s.name, s.kind, s.undoes, s.ordinal, s.state, s.seq, s.round, s.lane_id, s.open,
           s.total, s.good, s.bad, s.partial, s.good - s.skipped as undoable, s.begun, s.bad_before, s.blocked,
           s.ended_in, s.ends_as, s.ends_cause, s.ends_hard, s.held, jsonb_array_length(s.approvals) as approvals,
           s.approvals as given, s.opening, s.errand, s.errand_at, s.errand is not null as busy, s.called_off,
           s.fanned, coalesce(json_array_length(s.fan), 0) - s.fanned as unfanned
      from pawl.stage s where s.job_id = ${jobId}::uuid order by s.ordinal`
  const plans = await plansOf(
    sql,
    rows.map(({ id }) => id),
  )
  return rows.map(row => ({ ...row, plan: plans.get(row.id)! }))
}

type Plan = StageRow['plan']

/** Plans never change, and to read a thousand of them with every step of a long job is slow: the latest are kept. */
const knownPlans = new Map<string, Plan>()
const plansKept = 20_000

async function plansOf(sql: Sql, ids: readonly string[]): Promise<ReadonlyMap<string, Plan>> {
  const missing = ids.filter(id => !knownPlans.has(id))
  if (missing.length === 0) return knownPlans
  const rows = await sql<{ id: string; plan: Plan }>`
    select id, plan from pawl.stage where id = any(${missing}::uuid[])`
  const found = new Map(rows.map(({ id, plan }) => [id, plan]))
  for (const id of ids) if (!found.has(id)) found.set(id, knownPlans.get(id)!)
  if (knownPlans.size + rows.length > plansKept) knownPlans.clear()
  // What a transaction has written may be rolled back, but then nobody asks for its ids.
  for (const { id, plan } of rows) knownPlans.set(id, plan)
  return found
}

/** One transition of a job or stage, or a request that must be provable (`to` is the state it is in). */
export interface Step {
  readonly to: JobState | StageState
  readonly type?: string
  readonly cause: string
  readonly actor?: string
  readonly payload?: Record<string, unknown>
}

/** What is written to one row: its steps, and columns that change besides. */
export interface Change {
  readonly id: string
  readonly seq: number
  readonly steps: readonly Step[]
  readonly opensRound?: boolean
  readonly columns: Readonly<Record<string, unknown>>
}

const finals = {
  job: among(statesOf(jobLifecycle, 'final')),
  stage: among(statesOf(stageLifecycle, 'final')),
}

/** The columns that may be changed, and how they are read from JSON. */
const columns = {
  job: {
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
  },
  stage: {
    open: 'text',
    ends_as: 'text',
    ends_cause: 'text',
    ends_hard: 'boolean',
    error: 'jsonb',
    begun: 'boolean',
    bad_before: 'int',
    blocked: 'int',
    ended_in: 'int',
    total: 'int',
    held: 'boolean',
    approvals: 'jsonb',
    gate_until: 'timestamptz',
    opening: 'text',
    errand: 'text',
    errand_at: 'uuid',
    called_off: 'boolean',
    fan: 'json',
    fanned: 'int',
    metadata: 'jsonb',
  },
} as const

/**
 * Writes steps with their events, and columns. Each row must still be as it was when it was locked. The database takes
 * one move at a time, so what made several is written in as many statements; the columns go with the first.
 */
export async function writeChanges(
  sql: Sql,
  entity: 'job' | 'stage',
  changes: readonly Change[],
  actor: string,
): Promise<void> {
  let open = changes
  while (open.length > 0) {
    await writeFirstSteps(sql, entity, open, actor)
    open = open.flatMap(({ id, seq, steps }) =>
      steps.length > 1 ? [{ id, seq: seq + 1, steps: steps.slice(1), columns: {} }] : [],
    )
  }
}

async function writeFirstSteps(
  sql: Sql,
  entity: 'job' | 'stage',
  changes: readonly Change[],
  actor: string,
): Promise<void> {
  const sets = Object.entries(columns[entity]).map(([name, type]) => {
    const value =
      type === 'jsonb' || type === 'json' ? `nullif(c.x->'${name}', 'null')::${type}` : `(c.x->>'${name}')::${type}`
    return `${name} = case when c.x ? '${name}' then ${value} else e.${name} end`
  })
  const steps = changes.map(({ steps }) =>
    json(
      steps
        .slice(0, 1)
        .map(step => ({ ...step, type: step.type ?? `${entity}.${step.to}`, actor: step.actor ?? actor })),
    ),
  )
  const written = await sql`
    with c as materialized (
      select * from unnest(${changes.map(({ id }) => id)}::uuid[], ${changes.map(({ seq }) => seq)}::int[],
                           ${changes.map(({ opensRound }) => opensRound === true)}::boolean[], ${steps}::jsonb[],
                           ${changes.map(change => json(change.columns))}::jsonb[]) as c (id, seq, opens_round, steps, x)
    ), moved as (
      update pawl.${literal(entity)} e
         set state    = coalesce(c.steps->-1->>'to', e.state),
             seq      = e.seq + jsonb_array_length(c.steps),
             round    = e.round + case when c.opens_round then 1 else 0 end,
             ended_at = case when coalesce(c.steps->-1->>'to', e.state) in (${finals[entity]})
                             then coalesce(e.ended_at, greatest(pawl.clock(), (e.history[e.seq]).ts)) end,
             history  = e.history || array(
               select row(greatest(pawl.clock(), (e.history[e.seq]).ts), 0, s->>'to', s->>'type', s->>'actor',
                          s->>'cause', nullif(s->'payload', '{}'))::pawl.step
                 from jsonb_array_elements(c.steps) with ordinality as a (s, n) order by n),
             ${literal(sets.join(',\n             '))}
        from c
       where e.id = any(array[c.id]) and e.seq = c.seq
      returning e.id, e.seq, jsonb_array_length(c.steps) as n
    ), noted as (
      insert into pawl.change (entity, ids, seqs)
      select ${entity}, array_agg(id order by id, k), array_agg(seq - n + k order by id, k)
        from moved cross join generate_series(1, moved.n) as k having count(*) > 0
    )
    select id from moved`
  if (written.length !== changes.length) throw new Error(`a ${entity} moved under its job's lock`)
}

/** So that the babysitter goes on if whoever works on the job dies; taken away when there is nothing left to do. */
export async function keepErrand(sql: Sql, jobId: string, isOpen: boolean): Promise<void> {
  if (isOpen) {
    await sql`insert into pawl.errand (job_id) values (${jobId}::uuid) on conflict (job_id) do update set at = pawl.clock()`
  } else await sql`delete from pawl.errand where job_id = ${jobId}::uuid`
}

export async function hasErrand(sql: Sql, jobId: string): Promise<boolean> {
  const rows = await sql`select job_id from pawl.errand where job_id = ${jobId}::uuid`
  return rows.length > 0
}

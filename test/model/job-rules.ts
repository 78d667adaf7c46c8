/**
 * Rules that must hold for jobs whenever nothing is in progress. Roll-up is pure, so computing it again from the tasks
 * must give the stored counts and states.
 */

import { LockedJob } from '../../src/engine/jobs/locked-job.ts'
import { statesOf } from '../../src/kernel/lifecycle.ts'
import { taskLifecycle } from '../../src/kernel/task.ts'
import { withTableScans } from '../../src/store/driver/plans.ts'
import { inList, type Sql } from '../../src/store/driver/sql.ts'
import { nextAct } from '../harness/next-act.ts'

const withOutcome = (outcome: 'good' | 'bad') =>
  inList(statesOf(taskLifecycle).filter(state => taskLifecycle.states[state].outcome === outcome))

/** One line for each broken rule. */
export async function jobFaults(sql: Sql): Promise<string[]> {
  // Jobs with an errand are excluded: the babysitter has not finished with them.
  const jobs = await sql<{ id: string }>`
    select id from pawl.job where id <> all (select job_id from pawl.errand) order by id`
  const faults: string[] = []
  for (const { id } of jobs) faults.push(...(await openActs(sql, id)))
  for (const rule of [miscounted, orphans, misplaced, unfed]) faults.push(...(await withTableScans(sql, rule)))
  return faults
}

/** Jobs that have not ended and their stages, with the facts that explain why. */
export async function openJobs(sql: Sql): Promise<string[]> {
  const rows = await sql<{ description: string }>`
    select format('job %s %s, ends as %s, open: %s', j.id, j.state, j.ends_as, j.open) || string_agg(
             format(E'\n  %s %s %s, ends as %s, round %s: %s good, %s bad, %s blocked of %s, %s of %s fanned, errand %s; %s',
                    s.kind, s.name, s.state, s.ends_as, s.round, s.good, s.bad, s.blocked, s.total, s.fanned,
                    json_array_length(s.fan), s.errand,
                    s.plan->'needs' || (s.plan->'join') || (s.plan->'onFailure')),
             '' order by s.ordinal) as description
      from pawl.job j join pawl.stage s on s.job_id = j.id
     where j.ended_at is null group by j.id`
  return rows.map(({ description }) => description)
}

class Undo extends Error {}

/** Reads the job under its lock, as the engine does, and rolls back. No act must be left to do. */
async function openActs(sql: Sql, id: string): Promise<string[]> {
  const faults: string[] = []
  const readRules = async (tx: Sql) => {
    const { job, stages } = await LockedJob.lock(tx, id, 'test')
    const act = nextAct(
      job,
      stages.map(stage => ({ ...stage, busy: false })),
    )
    if (act !== undefined) {
      const { act: name, ...rest } = act
      const stage = 'stage' in rest ? `${rest.stage.name} (${rest.stage.state})` : ''
      const to = 'to' in rest ? rest.to : ''
      faults.push(`job ${id} (${job.state}) could still: ${name} ${stage} ${to}`)
    }
    throw new Undo()
  }
  await sql.begin(readRules).catch(error => {
    if (!(error instanceof Undo)) throw error
  })
  return faults
}

/** The counts of a stage, including appended changes, are those of its tasks. */
async function miscounted(sql: Sql): Promise<string[]> {
  const rows = await sql<{ fault: string }>`
    with appended as (
      select stage_id, sum(total) as total, sum(good) as good, sum(bad) as bad, sum(partial) as partial,
             sum(skipped) as skipped
        from pawl.tally group by stage_id
    ), counted as (
      select stage_id, count(*) as total, count(*) filter (where state in (${withOutcome('good')})) as good,
             count(*) filter (where state in (${withOutcome('bad')})) as bad,
             count(*) filter (where state in (${withOutcome('good')}) and partial) as partial,
             count(*) filter (where state = 'skipped') as skipped, count(*) filter (where state = 'blocked') as blocked
        from pawl.task where stage_id is not null group by stage_id
    ), both_ways as (
      select s.id, s.job_id, s.name, s.state, s.ends_as,
             array[s.total + coalesce(a.total, 0), s.good + coalesce(a.good, 0), s.bad + coalesce(a.bad, 0),
                   s.partial + coalesce(a.partial, 0), s.skipped + coalesce(a.skipped, 0)]::int[] as written,
             array[coalesce(c.total, 0) + case when s.ends_as is null and s.ended_at is null
                                               then coalesce(json_array_length(s.fan), 0) - s.fanned else 0 end,
                   coalesce(c.good, 0), coalesce(c.bad, 0), coalesce(c.partial, 0), coalesce(c.skipped, 0)]::int[] as counted,
             coalesce(c.blocked, 0) as blocked
        from pawl.stage s
        left join appended a on a.stage_id = s.id
        left join counted c on c.stage_id = s.id
    )
    select format('stage %s of %s (%s, ends as %s): total, good, bad, partial, skipped are %s, and counted %s',
                  name, job_id, state, ends_as, written, counted) as fault
      from both_ways where written <> counted
     union all
    select format('stage %s of %s is %s, and %s of its tasks are blocked', name, job_id, state, blocked)
      from both_ways where blocked > 0 and state not in ('created', 'waiting')`
  return rows.map(({ fault }) => fault)
}

/** No child is open under an ended parent. */
async function orphans(sql: Sql): Promise<string[]> {
  const rows = await sql<{ fault: string }>`
    select format('stage %s is %s, and its task %s %s', s.id, s.state, t.id, t.state) as fault
      from pawl.stage s join pawl.task t on t.stage_id = s.id
     where s.ended_at is not null and t.ended_at is null
     union all
    select format('job %s is %s, and its stage %s %s', j.id, j.state, s.name, s.state)
      from pawl.job j join pawl.stage s on s.job_id = j.id
     where j.ended_at is not null and s.ended_at is null`
  return rows.map(({ fault }) => fault)
}

/** A lane is open exactly while tasks of its stage may be claimed. */
async function misplaced(sql: Sql): Promise<string[]> {
  const rows = await sql<{ fault: string }>`
    select format('the lane of stage %s (%s, job %s) should be %s', s.name, s.state, j.state,
                  case when l.open then 'closed' else 'open' end) as fault
      from pawl.stage s join pawl.job j on j.id = s.job_id join pawl.lane l on l.id = s.lane_id
     where l.open <> (s.state in ('pending', 'running')
                      and case when s.kind = 'undo' then j.state = 'compensating' else j.state in ('pending', 'running') end)`
  return rows.map(({ fault }) => fault)
}

/** The feed has every event of jobs and stages once. */
async function unfed(sql: Sql): Promise<string[]> {
  const rows = await sql<{ fault: string }>`
    with fed as (
      select u.id, count(*) as events, count(distinct u.seq) as different, max(u.seq) as last
        from pawl.change cross join unnest(ids, seqs) as u (id, seq) where entity <> 'task' group by u.id
    )
    select format('%s %s has seq %s, and the feed %s events', e.entity, e.id, e.seq, f.events) as fault
      from (select 'job' as entity, id, seq from pawl.job union all select 'stage', id, seq from pawl.stage) as e
      left join fed f on f.id = e.id
     where (f.events, f.different, f.last) is distinct from (e.seq::bigint, e.seq::bigint, e.seq)`
  return rows.map(({ fault }) => fault)
}

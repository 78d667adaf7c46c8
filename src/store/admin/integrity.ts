/**
 * Rules that no single constraint can enforce, as queries that must find nothing. `pawl doctor` runs them over
 * everything, the babysitter over new rows, and the tests after every test.
 */
import { firstIdAt } from '../../kernel/id.ts'
import { edgesOf, type Lifecycle, statesOf } from '../../kernel/lifecycle.ts'
import { lifecycles } from '../../kernel/lifecycles.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import { viaIndex, withTableScans } from '../driver/plans.ts'
import { inList, literal, type Sql } from '../driver/sql.ts'
import { start } from '../feed/feed.ts'
import { findPositionBefore } from '../feed/feed-time.ts'

export interface BrokenRule {
  readonly rule: string
  readonly entityId: string
  readonly found: string
}

/**
 * Broken rules, of everything or of the entities that were created since a moment. The latter reads only these and their
 * events, however many others the store has.
 */
export function brokenRules(sql: Sql, since: Date | null = null): Promise<BrokenRule[]> {
  // Ids increase with time.
  const from = firstIdAt(since?.getTime() ?? 0)
  return withTableScans(sql, async tx => {
    // These joins read whole tables. Without statistics, the planner would choose nested loops, which take forever.
    await tx.script('set local enable_nestloop = off')
    if (since !== null) await tx.script('set local enable_seqscan = off')
    const found: BrokenRule[] = []
    for (const table of lifecycles) found.push(...(await brokenHistories(tx, table, from)))
    found.push(...(await brokenChanges(tx, from, since)))
    found.push(...(await misplacedTasks(tx, from)))
    found.push(...(await brokenJobs(tx, from)))
    found.push(...(await brokenFiles(tx, from)))
    return found
  })
}

/**
 * The moment since which rules are watched regularly: when the newest `tasks` were created, and at most `seconds` ago.
 * Rows are looked at again each time, so their number is limited too.
 */
export async function startOfWatch(sql: Sql, { seconds, tasks }: { seconds: number; tasks: number }): Promise<Date> {
  const [row] = await sql<{ since: Date }>`
    select greatest(pawl.clock() - make_interval(secs => ${seconds}::float8),
                    (select (history[1]).ts from pawl.task order by id desc offset ${tasks}::int limit 1)) as since`
  return row!.since
}

/**
 * I3, I4, I6: every event follows from the previous one by a transition of the table, and together they produce the
 * row.
 */
function brokenHistories(sql: Sql, table: Lifecycle, from: string): Promise<BrokenRule[]> {
  const epoch = literal(statesOf(table, 'held').length > 0 ? 'r.epoch' : '0')
  const arrows = edgesOf(table).map(edge => `('${edge.from}', '${edge.to}', ${edge.raisesEpoch})`)
  return sql<BrokenRule>`
    select 'I3 I4 I6 events are moves that go forward, and replay to the row' as rule, r.id as entity_id,
           format('seq %s: %s -> %s, epoch %s after %s', h.seq, last.state, h.state, h.epoch, last.epoch) as found
      from pawl.${literal(table.entity)} r
     cross join unnest(r.history) with ordinality as h (ts, epoch, state, type, actor, cause, payload, seq)
     cross join lateral (select (r.history[h.seq - 1]).state, (r.history[h.seq - 1]).epoch, (r.history[h.seq - 1]).ts) as last
     where r.id >= ${from}::uuid
       and (case when h.seq = 1 then h.state not in (${inList(table.initial)}) or h.epoch <> 0
                when h.state = last.state then h.type is null or h.epoch <> last.epoch
                else (last.state, h.state, h.epoch = last.epoch + 1) not in (${literal(arrows.join(', '))})
                     or h.epoch not in (last.epoch, last.epoch + 1) or h.ts < last.ts
            end) is not false
     union all
    select 'I4 events replay to the row', r.id, format('row: %s seq %s round %s epoch %s', r.state, r.seq, r.round, ${epoch})
      from pawl.${literal(table.entity)} r
     where r.id >= ${from}::uuid
       and (cardinality(r.history), (r.history[r.seq]).state, (r.history[r.seq]).epoch,
            1 + (select count(*) from generate_series(2, r.seq) as s
                  where (r.history[s - 1]).state in (${inList(statesOf(table, 'final'))})
                    and (r.history[s]).state not in (${inList(statesOf(table, 'final'))})))
           is distinct from (r.seq, r.state, ${epoch}, r.round::bigint)
     limit 100`
}

/**
 * I4: the feed has every event exactly once. An entity with a chosen id may be older than its id says, and its first
 * events may not have been read, so it is left out.
 */
async function brokenChanges(sql: Sql, from: string, since: Date | null): Promise<BrokenRule[]> {
  const after = since === null ? start : await findPositionBefore(sql, since)
  return sql<BrokenRule>`
    select 'I4 the feed has every event once' as rule, t.id as entity_id,
           format('row has seq %s, the feed %s events, %s of them different', t.seq, c.n, c.d) as found
      from (select id, seq, (history[1]).ts as created_at from pawl.task where id >= ${from}::uuid
             union all
            select id, seq, (history[1]).ts from pawl.stage where id >= ${from}::uuid
             union all
            select id, seq, (history[1]).ts from pawl.job where id >= ${from}::uuid
             union all
            select id, seq, (history[1]).ts from pawl.artifact where id >= ${from}::uuid) as t
      left join (select u.id, count(*) as n, count(distinct u.seq) as d, max(u.seq) as seq
                   from pawl.change as c cross join unnest(c.ids, c.seqs) as u (id, seq)
                  where (c.tx, c.n) > (${after.tx}::bigint, ${after.n}::bigint) and u.id >= ${from}::uuid
                  group by u.id) as c on c.id = t.id
     where (${since}::timestamptz is null or t.created_at >= ${since}::timestamptz)
       and (c.n, c.d, c.seq) is distinct from (t.seq::bigint, t.seq::bigint, t.seq)
     limit 100`
}

/** A task that is missing in the tables beside its own would never be claimed, rescued or noticed. */
function misplacedTasks(sql: Sql, from: string): Promise<BrokenRule[]> {
  const open = inList(taskLifecycle.moves.claim.from)
  const held = inList(statesOf(taskLifecycle, 'held'))
  const bad = inList(statesOf(taskLifecycle).filter(state => taskLifecycle.states[state].outcome === 'bad'))
  return sql<BrokenRule>`
    select 'a task that may be claimed has its place in the queue' as rule, t.id as entity_id,
           format('%s, with %s places', t.state, count(d.id)) as found
      from pawl.task t
      left join (select lane_id, run_at, u.id from pawl.due cross join unnest(ids) as u (id)) as d
        on d.id = t.id and d.lane_id = t.lane_id and d.run_at = t.run_at
     -- A task that was cancelled while a claim had its row of due locked may leave the row behind. The next claim
     -- deletes it.
     where t.id >= ${from}::uuid and t.ended_at is null
     group by t.id, t.state
    having count(d.id) <> case when t.state in (${open}) then 1 else 0 end
     union all
    select 'a task that is held is watched', t.id, t.state
      from pawl.task t
     where t.id >= ${from}::uuid and t.state in (${held})
       and not exists (select from pawl.claim c cross join unnest(c.ids, c.epochs) as won (id, epoch)
                        where won.id = t.id and won.epoch = t.epoch)
     union all
    select 'a task that ended badly is in trouble, and no other', coalesce(t.id, x.task_id), format('%s, %s', t.state, x.state)
      from (select id, state from pawl.task where id >= ${from}::uuid) as t
      full join (select task_id, state from pawl.trouble where task_id >= ${from}::uuid) as x on x.task_id = t.id
     where (case when t.state in (${bad}) then t.state end) is distinct from x.state
     union all
    select 'a time to live is kept where the chore looks for it', t.id, format('expires at %s', t.expire_at)
      from pawl.task t
     where t.id >= ${from}::uuid and t.expire_at is not null and t.ended_at is null
       and not exists (select from pawl.expiry e where e.at = t.expire_at and e.task_id = t.id)
     union all
    select 'a soft cancel is kept where its worker and the chore look for it', t.id, t.state
      from pawl.task t
     where t.id >= ${from}::uuid and t.cancel_at is not null and t.state in (${held})
       and not exists (select from pawl.cancel c where c.task_id = t.id and c.epoch = t.epoch)
     union all
    select 'every task stands in a lane', t.id, format('lane %s does not exist', t.lane_id)
      from pawl.task t left join pawl.lane l on l.id = ${viaIndex('t.lane_id')}
     where t.id >= ${from}::uuid and l.id is null
     limit 100`
}

/**
 * I8, I9, I11: no child is open under an ended parent, the counts of a stage match its tasks, and lanes are open only
 * while their job runs.
 */
function brokenJobs(sql: Sql, from: string): Promise<BrokenRule[]> {
  const good = inList(statesOf(taskLifecycle).filter(state => taskLifecycle.states[state].outcome === 'good'))
  return sql<BrokenRule>`
    select 'I8 no stage is open under an ended job' as rule, s.id as entity_id, format('%s under %s', s.state, j.state) as found
      from pawl.stage s join pawl.job j on j.id = ${viaIndex('s.job_id')}
     where s.id >= ${from}::uuid and j.ended_at is not null and s.ended_at is null
     union all
    select 'I8 no task is open under an ended stage', t.id, format('%s under %s', t.state, s.state)
      from pawl.task t join pawl.stage s on s.id = ${viaIndex('t.stage_id')}
     where t.id >= ${from}::uuid and s.ended_at is not null and t.ended_at is null
     union all
    select 'I8 the counts of a stage are those of its tasks', s.id,
           format('counted %s good, %s bad, %s blocked of %s; there are %s, %s, %s of %s', s.good + c.good, s.bad + c.bad,
                  s.blocked + c.blocked, s.total + c.total - u.unfanned, t.good, t.bad, t.blocked, t.total)
      from pawl.stage s
      join pawl.job j on j.id = ${viaIndex('s.job_id')} and j.visible
     cross join lateral (
             select case when s.ends_as is null then coalesce(json_array_length(s.fan), 0) - s.fanned else 0 end
               as unfanned) as u
      left join lateral (
             select coalesce(sum(good), 0) as good, coalesce(sum(bad), 0) as bad, coalesce(sum(total), 0) as total,
                    coalesce(sum(blocked), 0) as blocked
               from pawl.tally where job_id = s.job_id and stage_id = s.id) as c on true
      left join lateral (
             select count(*) filter (where state in (${good})) as good,
                    count(*) filter (where ended_at is not null and state not in (${good})) as bad,
                    count(*) filter (where state = 'blocked') as blocked, count(*) as total
               from pawl.task where stage_id = s.id) as t on true
     where s.id >= ${from}::uuid and s.errand is null
       and (s.good + c.good, s.bad + c.bad, s.blocked + c.blocked, s.total + c.total - u.unfanned)
           is distinct from (t.good, t.bad, t.blocked, t.total)
     union all
    select 'I9 a lane is open only while its job runs', j.id, format('lane %s is open, the job is %s', l.id, j.state)
      from pawl.lane l join pawl.job j on j.id = l.job_id
     where j.id >= ${from}::uuid and l.open and j.state not in ('pending', 'running', 'compensating')
     limit 100`
}

/** Only the files of the attempt that won count. */
function brokenFiles(sql: Sql, from: string): Promise<BrokenRule[]> {
  const held = inList(statesOf(taskLifecycle, 'held'))
  return sql<BrokenRule>`
    select 'files count only of the attempt that won' as rule, a.id as entity_id,
           format('%s of epoch %s, its task is %s under %s', a.state, a.epoch, t.state, t.epoch) as found
      from pawl.artifact a join pawl.task t on t.id = ${viaIndex('a.task_id')}
     where a.id >= ${from}::uuid
       and (a.won or a.state = 'stored') and (t.state, t.epoch) not in (('succeeded', a.epoch), ('skipped', a.epoch))
     union all
    select 'no file is open whose attempt is over', a.id,
           format('%s of epoch %s, its task is %s under %s', a.state, a.epoch, t.state, t.epoch)
      from pawl.artifact a join pawl.task t on t.id = ${viaIndex('a.task_id')}
     where a.id >= ${from}::uuid and a.ended_at is null and not a.won
       and (t.state not in (${held}) or t.epoch <> a.epoch)
     union all
    select 'a stage that ended well has its files in their places', s.id, format('%s, %s is %s', s.state, a.name, a.state)
      from pawl.artifact a join pawl.stage s on s.id = ${viaIndex('a.stage_id')}
     where a.id >= ${from}::uuid and s.id >= ${from}::uuid and s.state in ('succeeded', 'partial') and a.won and a.state <> 'stored'
     union all
    select 'a stage whose inputs are being found is seen to', s.id, s.state
      from pawl.stage s
     where s.id >= ${from}::uuid and s.listing = 'under way' and s.ended_at is null and s.ends_as is null
       and not exists (select from pawl.listing where stage_id = s.id)
     limit 100`
}

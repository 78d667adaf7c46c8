/**
 * Rules that no single constraint can enforce, as queries that must find nothing. `pawl doctor` runs them over
 * everything, the babysitter over new rows, and the tests after every test.
 */
import { firstIdAt } from '../../kernel/id.ts'
import { edgesOf, type Lifecycle, statesOf } from '../../kernel/lifecycle.ts'
import { lifecycles } from '../../kernel/lifecycles.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import { clockMs } from '../driver/clock.ts'
import { viaIndex, withTableScans } from '../driver/plans.ts'
import { inList, type Literal, literal, type Sql } from '../driver/sql.ts'
import { start } from '../feed/feed.ts'
import { findPositionBefore } from '../feed/feed-time.ts'

export interface BrokenRule {
  readonly rule: string
  readonly entityId: string
  readonly found: string
}

/** The entities that the alarm looks at, by their ids, and the moment from which it reads their events. */
export interface Watch {
  readonly since: Date
  readonly from: string
  readonly until: string
}

/** The rows that a check reads. */
interface Scope {
  readonly watch: Watch | null
  /** A condition: an entity with this id is looked at. */
  has(id: string): Literal
  /** A condition: a row of `due` with this id may hold tasks that are looked at. */
  mayHold(dueId: string): Literal
  /** A key for joins. */
  key(name: string): Literal
}

const everything: Scope = {
  watch: null,
  has: () => literal('true'),
  mayHold: () => literal('true'),
  key: literal,
}

/** A row of `due` is found by the lowest of its ids, which may be older than the task that is looked at. */
const olderIds = 100

function scopeOf(watch: Watch): Scope {
  const { from, until } = watch
  const before = `select id from pawl.task where id < '${from}' order by id desc offset ${olderIds} limit 1`
  return {
    watch,
    has: id => literal(`${id} between '${from}' and '${until}'`),
    mayHold: id => literal(`${id} >= coalesce((${before}), '${firstIdAt(0)}')`),
    key: viaIndex,
  }
}

/** Checks everything, or what is watched. The latter reads only this, however many others the store has. */
export function brokenRules(sql: Sql, watch: Watch | null = null): Promise<BrokenRule[]> {
  const scope = watch === null ? everything : scopeOf(watch)
  return withTableScans(sql, async tx => {
    // These joins read whole tables. Without statistics, the planner would choose nested loops, which take forever.
    await tx.script('set local enable_nestloop = off')
    if (watch !== null) await tx.script('set local enable_seqscan = off; set local enable_bitmapscan = off')
    const found: BrokenRule[] = []
    for (const table of lifecycles) found.push(...(await brokenHistories(tx, table, scope)))
    found.push(...(await foundTwice(scope, scope => brokenChanges(tx, scope))))
    found.push(...(await foundTwice(scope, scope => brokenPlaces(tx, scope))))
    found.push(...(await misplacedTasks(tx, scope)))
    found.push(...(await brokenJobs(tx, scope)))
    found.push(...(await brokenFiles(tx, scope)))
    return found
  })
}

/** Where the alarm reads only a part of what could belong to a task, it looks at all of it before it reports the task. */
async function foundTwice(scope: Scope, check: (scope: Scope) => Promise<BrokenRule[]>): Promise<BrokenRule[]> {
  const found = await check(scope)
  if (scope.watch === null || found.length === 0) return found
  const ids = inList(found.map(({ entityId }) => entityId)).literal
  return check({ ...everything, has: id => literal(`${id} in (${ids})`), key: viaIndex })
}

const daySeconds = 86_400

/**
 * Returns the newest entities: at most `rows` of each kind, and at most `seconds` old. They are looked at again each time.
 * Chosen ids are random, so nearly all of them lie far in the future and are left out.
 */
export async function startOfWatch(sql: Sql, { seconds, rows }: { seconds: number; rows: number }): Promise<Watch> {
  const now = await clockMs(sql)
  const earliest = new Date(now - seconds * 1000)
  const [from, until] = [firstIdAt(earliest.getTime()), firstIdAt(now + daySeconds * 1000)]
  const last = lifecycles.map(
    ({ entity }) => `
      (select id, (history[1]).ts as at from pawl.${entity} where id between '${from}' and '${until}'
        order by id desc offset ${rows - 1} limit 1)`,
  )
  const [first] = await sql.begin(async tx => {
    // A bitmap scan would read all ids to sort them.
    await tx.script('set local enable_bitmapscan = off')
    return tx<{ id: string; at: Date }>`
      select * from (${literal(last.join(' union all '))}) as last order by id desc limit 1`
  })
  if (first === undefined) return { since: earliest, from, until }
  return { since: first.at > earliest ? first.at : earliest, from: first.id, until }
}

/**
 * I3, I4, I6: every event follows from the previous one by a transition of the table, and together they produce the
 * row.
 */
function brokenHistories(sql: Sql, table: Lifecycle, { has }: Scope): Promise<BrokenRule[]> {
  const epoch = literal(statesOf(table, 'held').length > 0 ? 'r.epoch' : '0')
  const arrows = edgesOf(table).map(edge => `('${edge.from}', '${edge.to}', ${edge.raisesEpoch})`)
  return sql<BrokenRule>`
    select 'I3 I4 I6 events are moves that go forward, and replay to the row' as rule, r.id as entity_id,
           format('seq %s: %s -> %s, epoch %s after %s', h.seq, last.state, h.state, h.epoch, last.epoch) as found
      from pawl.${literal(table.entity)} r
     cross join unnest(r.history) with ordinality as h (ts, epoch, state, type, actor, cause, payload, seq)
     cross join lateral (select (r.history[h.seq - 1]).state, (r.history[h.seq - 1]).epoch, (r.history[h.seq - 1]).ts) as last
     where ${has('r.id')}
       and (case when h.seq = 1 then h.state not in (${inList(table.initial)}) or h.epoch <> 0
                when h.state = last.state then h.type is null or h.epoch <> last.epoch
                else (last.state, h.state, h.epoch = last.epoch + 1) not in (${literal(arrows.join(', '))})
                     or h.epoch not in (last.epoch, last.epoch + 1) or h.ts < last.ts
            end) is not false
     union all
    select 'I4 events replay to the row', r.id, format('row: %s seq %s round %s epoch %s', r.state, r.seq, r.round, ${epoch})
      from pawl.${literal(table.entity)} r
     where ${has('r.id')}
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
async function brokenChanges(sql: Sql, { watch, has }: Scope): Promise<BrokenRule[]> {
  const since = watch?.since ?? null
  const after = since === null ? start : await findPositionBefore(sql, since)
  return sql<BrokenRule>`
    select 'I4 the feed has every event once' as rule, t.id as entity_id,
           format('row has seq %s, the feed %s events, %s of them different', t.seq, c.n, c.d) as found
      from (select id, seq, (history[1]).ts as created_at from pawl.task where ${has('id')}
             union all
            select id, seq, (history[1]).ts from pawl.stage where ${has('id')}
             union all
            select id, seq, (history[1]).ts from pawl.job where ${has('id')}
             union all
            select id, seq, (history[1]).ts from pawl.artifact where ${has('id')}) as t
      left join (select u.id, count(*) as n, count(distinct u.seq) as d, max(u.seq) as seq
                   from pawl.change as c cross join unnest(c.ids, c.seqs) as u (id, seq)
                  where (c.tx, c.n) > (${after.tx}::bigint, ${after.n}::bigint) and ${has('u.id')}
                  group by u.id) as c on c.id = t.id
     where (${since}::timestamptz is null or t.created_at >= ${since}::timestamptz)
       and (c.n, c.d, c.seq) is distinct from (t.seq::bigint, t.seq::bigint, t.seq)
     limit 100`
}

/** A task that may be claimed and is not in the queue would never be claimed. Tasks that share a place are many. */
function brokenPlaces(sql: Sql, { has, mayHold, key }: Scope): Promise<BrokenRule[]> {
  const open = inList(taskLifecycle.moves.claim.from)
  return sql<BrokenRule>`
    with
    unended as materialized (
      select id, state, lane_id, run_at from pawl.task where ${has('id')} and ended_at is null
    ),
    place as materialized (select distinct lane_id, run_at from unended)
    select 'a task that may be claimed has its place in the queue' as rule, t.id as entity_id,
           format('%s, with %s places', t.state, count(d.id)) as found
      from unended t
      left join (select d.lane_id, d.run_at, u.id
                   from place
                   join pawl.due d on d.lane_id = ${key('place.lane_id')} and d.run_at = ${key('place.run_at')}
                                  and ${mayHold('d.id')}
                  cross join unnest(d.ids) as u (id)) as d
        on d.id = t.id and d.lane_id = t.lane_id and d.run_at = t.run_at
     -- A task that was cancelled while a claim had its row of due locked may leave the row behind. The next claim
     -- deletes it.
     group by t.id, t.state
    having count(d.id) <> case when t.state in (${open}) then 1 else 0 end
     limit 100`
}

/** A task that is missing in the tables beside its own would never be rescued or noticed. */
function misplacedTasks(sql: Sql, { has, key }: Scope): Promise<BrokenRule[]> {
  const held = inList(statesOf(taskLifecycle, 'held'))
  const bad = inList(statesOf(taskLifecycle).filter(state => taskLifecycle.states[state].outcome === 'bad'))
  return sql<BrokenRule>`
    select 'a task that is held is watched' as rule, t.id as entity_id, t.state as found
      from pawl.task t
     where ${has('t.id')} and t.state in (${held})
       and not exists (select from pawl.claim c cross join unnest(c.ids, c.epochs) as won (id, epoch)
                        where won.id = t.id and won.epoch = t.epoch)
     union all
    select 'a task that ended badly is in trouble, and no other', coalesce(t.id, x.task_id), format('%s, %s', t.state, x.state)
      from (select id, state from pawl.task where ${has('id')}) as t
      full join (select task_id, state from pawl.trouble where ${has('task_id')}) as x on x.task_id = t.id
     where (case when t.state in (${bad}) then t.state end) is distinct from x.state
     union all
    select 'a time to live is kept where the chore looks for it', t.id, format('expires at %s', t.expire_at)
      from pawl.task t
     where ${has('t.id')} and t.expire_at is not null and t.ended_at is null
       and not exists (select from pawl.expiry e where e.at = ${key('t.expire_at')} and e.task_id = ${key('t.id')})
     union all
    select 'a soft cancel is kept where its worker and the chore look for it', t.id, t.state
      from pawl.task t
     where ${has('t.id')} and t.cancel_at is not null and t.state in (${held})
       and not exists (select from pawl.cancel c where c.task_id = t.id and c.epoch = t.epoch)
     union all
    select 'every task stands in a lane', t.id, format('lane %s does not exist', t.lane_id)
      from pawl.task t left join pawl.lane l on l.id = ${key('t.lane_id')}
     where ${has('t.id')} and l.id is null
     limit 100`
}

/**
 * I8, I9, I11: no child is open under an ended parent, the counts of a stage match its tasks, and lanes are open only
 * while their job runs.
 */
function brokenJobs(sql: Sql, { has, key }: Scope): Promise<BrokenRule[]> {
  const good = inList(statesOf(taskLifecycle).filter(state => taskLifecycle.states[state].outcome === 'good'))
  return sql<BrokenRule>`
    select 'I8 no stage is open under an ended job' as rule, s.id as entity_id, format('%s under %s', s.state, j.state) as found
      from pawl.stage s join pawl.job j on j.id = ${key('s.job_id')}
     where ${has('s.id')} and j.ended_at is not null and s.ended_at is null
     union all
    select 'I8 no task is open under an ended stage', t.id, format('%s under %s', t.state, s.state)
      from pawl.task t join pawl.stage s on s.id = ${key('t.stage_id')}
     where ${has('t.id')} and s.ended_at is not null and t.ended_at is null
     union all
    select 'I8 the counts of a stage are those of its tasks', s.id,
           format('counted %s good, %s bad, %s blocked of %s; there are %s, %s, %s of %s', s.good + c.good, s.bad + c.bad,
                  s.blocked + c.blocked, s.total + c.total - u.unfanned, t.good, t.bad, t.blocked, t.total)
      from pawl.stage s
      join pawl.job j on j.id = ${key('s.job_id')} and j.visible
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
     where ${has('s.id')} and s.errand is null
       and (s.good + c.good, s.bad + c.bad, s.blocked + c.blocked, s.total + c.total - u.unfanned)
           is distinct from (t.good, t.bad, t.blocked, t.total)
     union all
    select 'I9 a lane is open only while its job runs', j.id, format('lane %s is open, the job is %s', l.id, j.state)
      from pawl.lane l join pawl.job j on j.id = l.job_id
     where ${has('j.id')} and l.open and j.state not in ('pending', 'running', 'compensating')
     limit 100`
}

/** Only the files of the attempt that won count. */
function brokenFiles(sql: Sql, { has, key }: Scope): Promise<BrokenRule[]> {
  const held = inList(statesOf(taskLifecycle, 'held'))
  return sql<BrokenRule>`
    select 'files count only of the attempt that won' as rule, a.id as entity_id,
           format('%s of epoch %s, its task is %s under %s', a.state, a.epoch, t.state, t.epoch) as found
      from pawl.artifact a join pawl.task t on t.id = ${key('a.task_id')}
     where ${has('a.id')}
       and (a.won or a.state = 'stored') and (t.state, t.epoch) not in (('succeeded', a.epoch), ('skipped', a.epoch))
     union all
    select 'no file is open whose attempt is over', a.id,
           format('%s of epoch %s, its task is %s under %s', a.state, a.epoch, t.state, t.epoch)
      from pawl.artifact a join pawl.task t on t.id = ${key('a.task_id')}
     where ${has('a.id')} and a.ended_at is null and not a.won
       and (t.state not in (${held}) or t.epoch <> a.epoch)
     union all
    select 'a stage that ended well has its files in their places', s.id, format('%s, %s is %s', s.state, a.name, a.state)
      from pawl.artifact a join pawl.stage s on s.id = ${key('a.stage_id')}
     where ${has('a.id')} and ${has('s.id')} and s.state in ('succeeded', 'partial') and a.won and a.state <> 'stored'
     union all
    select 'a stage whose inputs are being found is seen to', s.id, s.state
      from pawl.stage s
     where ${has('s.id')} and s.listing = 'under way' and s.ended_at is null and s.ends_as is null
       and not exists (select from pawl.listing where stage_id = s.id)
     limit 100`
}

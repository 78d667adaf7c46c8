// Fills a store with tasks that have ended, as fast as the database can write rows.

import type { OwnStore } from './own-store.ts'

const tasksPerJob = 1000
const daysKept = 10
/** This share of the tasks is older than the retention period. In a small store, enough to measure their removal. */
const oldShare = (count: number) => Math.max(0.02, Math.min(0.4, 20_000 / count))

/** Inserts rows as a drain leaves them, with their four events. Half of them belong to ended jobs. */
export async function addEndedTasks({ engine, client }: OwnStore, count: number): Promise<void> {
  // The rows of small tables are copied from a job that really ran.
  const { id } = await engine.submit({ name: 'ended', stages: [{ name: 'only', task: 'noop', payloads: [] }] })
  const { rows: lanes } = await client.query(
    `insert into pawl.lane (queue, priority) values ('noop', 0)
         on conflict (queue, stage_id, priority, sla) do update set queue = excluded.queue returning id`,
  )
  const jobs = Math.floor(count / 2 / tasksPerJob)
  await client.query('begin')
  // New rows of a table that is emptied in the same transaction are not logged (wal_level = minimal). The guards of
  // moves are off, because they refuse rows that begin as ended. The CHECKs stay.
  await client.query('truncate pawl.task')
  await client.query('alter table pawl.task disable trigger user, set (fillfactor = 85)')
  await client.query('alter table pawl.job disable trigger user')
  await client.query('alter table pawl.stage disable trigger user')
  await client.query(endedJobs, [id, jobs, tasksPerJob])
  await client.query(endedTasks, [count, jobs * tasksPerJob, tasksPerJob, daysKept, oldShare(count), lanes[0].id])
  await client.query('alter table pawl.task enable trigger user, set (fillfactor = 25)')
  await client.query('alter table pawl.job enable trigger user')
  await client.query('alter table pawl.stage enable trigger user')
  await client.query('drop table bench_stage')
  await client.query('commit')
  await client.query('vacuum analyze')
  await client.query('checkpoint')
}

const endedJobs = `
  with copy as materialized (
    select n, gen_random_uuid() as job_id, gen_random_uuid() as stage_id from generate_series(1, $2::int) as n
  ), new_lane as (
    insert into pawl.lane (queue, stage_id, priority, open, job_id)
    select 'noop', stage_id, 0, false, job_id from copy
    returning id, stage_id
  ), new_job as (
    insert into pawl.job (id, name, seq, round, state, ended_at, history, plan, begun, visible)
    select c.job_id, j.name, j.seq, j.round, j.state, coalesce(j.ended_at, now()), j.history, j.plan, true, true
      from copy c, pawl.job j where j.id = $1
    returning id, seq
  ), new_stage as (
    insert into pawl.stage (id, job_id, name, seq, round, state, ended_at, history, plan, lane_id, total, good, begun, ended_in)
    select c.stage_id, c.job_id, s.name, s.seq, s.round, s.state, coalesce(s.ended_at, now()), s.history, s.plan, l.id,
           $3::int, $3::int, true, 1
      from copy c join new_lane l using (stage_id), pawl.stage s where s.job_id = $1
    returning id, seq
  ), job_feed as (
    insert into pawl.change (at, entity, ids, seqs)
    select now() - interval '2 days', 'job', array_agg(id), array_agg(n)
      from new_job cross join generate_series(1, seq) as n
  ), stage_feed as (
    insert into pawl.change (at, entity, ids, seqs)
    select now() - interval '2 days', 'stage', array_agg(id), array_agg(n)
      from new_stage cross join generate_series(1, seq) as n
  )
  select c.n, c.job_id, c.stage_id, l.id as lane_id
    into temp bench_stage
    from copy c join new_lane l using (stage_id)`

/** Each row of the feed names the four events of up to a thousand tasks. */
const endedTasks = `
  with made as (
  insert into pawl.task (id, lane_id, seq, round, epoch, run_at, ended_at, state, type, owner, job_id, stage_id,
                         payload, history)
  select (lpad(to_hex((date_part('epoch', t.at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(i & 4095), 3, '0') ||
          'a' || lpad(to_hex(i), 15, '0'))::uuid,
         coalesce(s.lane_id, $6::int), 4, 1, 1, t.at, t.at + interval '3 s', 'succeeded', 'noop', 'worker-1', s.job_id,
         s.stage_id,
         json_build_object('order', i, 'customer', 'customer-4711@example.com', 'note', 'a parcel of books, leave at the door'),
         array[row(t.at, 0, 'queued', null, 'producer', null, null)::pawl.step,
               row(t.at + interval '1 s', 1, 'assigned', null, 'worker:worker-1', null, null)::pawl.step,
               row(t.at + interval '2 s', 1, 'running', null, null, 'implied', null)::pawl.step,
               row(t.at + interval '3 s', 1, 'succeeded', null, null, null, null)::pawl.step]
    from generate_series(1, $1::bigint) as series (i)
   cross join lateral (
           select date_trunc('milliseconds', now() - interval '1 hour' - case when i < $1 * $5::float8
                    then make_interval(days => 15) - make_interval(secs => i / 1000.0)
                    else make_interval(secs => $4::int * 86400.0 * ($1 - i) / $1) end) as at) as t
    left join bench_stage s on i > $1 - $2::bigint and s.n = ($1 - i) / $3::int + 1
  returning id
  ), numbered as (
    select id, row_number() over () / 1000 as part from made
  )
  insert into pawl.change (at, entity, ids, seqs)
  select now() - interval '2 days', 'task', array_agg(id), array_agg(seq)
    from numbered cross join generate_series(1, 4) as seq group by part`

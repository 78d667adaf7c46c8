/** Trouble is told and brought back by what it says. */
export const alike = `
-- What an error says, without what differs from one to the next: numbers and ids. What comes after 300 letters is not seen.
create function pawl.gist(message text) returns text language sql immutable parallel safe as $$
  select regexp_replace(left(coalesce(message, ''), 300),
    '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9]+', '#', 'g') $$;

-- What trouble is counted by lies with it. A type of null: a process of an earlier version wrote it, and its task knows.
alter table pawl.trouble
  add column type     text collate "C",
  add column lane_id  integer,
  add column job_id   uuid,
  add column stage_id uuid,
  add column gist     text collate "C",
  add column ended_at timestamptz;

update pawl.trouble x
   set type = t.type, lane_id = t.lane_id, job_id = t.job_id, stage_id = t.stage_id, ended_at = t.ended_at,
       gist = pawl.gist(t.error->>'message')
  from pawl.task t
 where t.id = x.task_id;

-- Ended jobs that have been kept for long enough are found among those that ended first.
create index job_ended on pawl.job (ended_at) where ended_at is not null;
`

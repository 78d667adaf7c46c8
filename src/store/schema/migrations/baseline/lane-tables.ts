/** Lanes: the short list that a claim scans before it looks at tasks. */
export const laneTables = `
-- One row per queue and priority (and per class of deadlines) for stand-alone tasks, and one per stage. Pausing,
-- limiting and reordering work changes lanes and never the tasks in them.
create table pawl.lane (
  id          integer generated always as identity primary key,
  queue       text collate "C" not null,
  stage_id    uuid,
  priority    integer not null,
  open        boolean not null default true,
  job_id      uuid,
  -- Claims scan lanes in this order: the priority, raised while the lane waits.
  rank        integer not null default 0,
  -- How many of its tasks may be held at once; null: any number. With a limit, slots and slot_epochs name the leases
  -- that hold places. The next claim removes those that have ended.
  parallelism integer check (parallelism > 0),
  slots       uuid[] not null default '{}',
  slot_epochs integer[] not null default '{}',
  -- The soft and hard deadlines of its job.
  soft_at     timestamptz,
  hard_at     timestamptz,
  since       timestamptz not null default pawl.clock(),
  -- The class of deadlines of stand-alone tasks; null: none. Classes are coarse, because a claim scans every lane:
  -- '64/512' has soft deadlines of 64 to 128 seconds and hard ones of 512 to 1024.
  sla         text collate "C",
  constraint lane_slots_are_leases check (cardinality(slots) = cardinality(slot_epochs)),
  constraint lane_key unique nulls not distinct (queue, stage_id, priority, sla)
) with (fillfactor = 50);
-- Slots change with every claim. Free space on the page keeps these updates out of the indexes.
create index lane_order on pawl.lane (queue, rank desc, id) where open;
create index lane_open on pawl.lane (id) where open;
create index lane_job on pawl.lane (job_id) where job_id is not null;
create index lane_stage on pawl.lane (stage_id) where stage_id is not null;

-- The lane of a stand-alone task with these settings (its own and those of its type), created if it is missing. When
-- two transactions create the same lane at once, the second waits for the first and finds its lane.
create function pawl.lane_for(queue text, priority integer, own jsonb, typed jsonb) returns integer
  language plpgsql as $$
declare
  soft   float8 := pawl.setting(own, typed, 'softDeadlineSeconds');
  hard   float8 := pawl.setting(own, typed, 'hardDeadlineSeconds');
  wanted text   := case when coalesce(soft, hard) is not null
                        then concat(power(2, floor(log(soft) / log(2))), '/', power(2, floor(log(hard) / log(2)))) end;
  lane   integer;
begin
  for tries in 1..2 loop
    select l.id into lane
      from pawl.lane l
     where l.queue = lane_for.queue and l.priority = lane_for.priority and l.stage_id is null
       and l.sla is not distinct from wanted;
    exit when lane is not null;
    insert into pawl.lane (queue, priority, rank, sla)
    values (lane_for.queue, lane_for.priority, lane_for.priority, wanted)
        on conflict do nothing
    returning id into lane;
    exit when lane is not null;
  end loop;
  return lane;
end $$;
`

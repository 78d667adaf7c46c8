/** Lanes of stages: an order that ages, a limit on what is held at once, and the deadlines of their jobs. */
export const lanes = `
alter table pawl.lane
  add column job_id      uuid,
  -- What a claim orders by: the priority, raised while the lane waits. With a default, for a process of the version
  -- before makes lanes without one; the chore that ages lanes mends it.
  add column rank        integer not null default 0,
  -- How many of its tasks may be held at once; null: any number. Then slots and slot_epochs name the leases that hold
  -- them: those that are over go with the next claim.
  add column parallelism integer check (parallelism > 0),
  add column slots       uuid[] not null default '{}',
  add column slot_epochs integer[] not null default '{}',
  -- When its job should, and when it must be done.
  add column soft_at     timestamptz,
  add column hard_at     timestamptz,
  add column since       timestamptz not null default pawl.clock(),
  add constraint lane_slots_are_leases check (cardinality(slots) = cardinality(slot_epochs)),
  -- Slots change with every claim, and room on the page spares the indexes that.
  set (fillfactor = 50);
update pawl.lane set rank = priority;

create index lane_order on pawl.lane (queue, rank desc, id) where open;
create index lane_open on pawl.lane (id) where open;
create index lane_job on pawl.lane (job_id) where job_id is not null;
create index lane_stage on pawl.lane (stage_id) where stage_id is not null;

-- Which of these leases still hold their tasks: a task that was removed is held by none, and one that is seen under an
-- earlier lease is about to be seen under this one.
create function pawl.held_slots(slots uuid[], epochs integer[]) returns table (id uuid, epoch integer)
  language sql stable as $$
  select s.id, s.epoch
    from unnest(slots, epochs) as s (id, epoch)
    join pawl.task t on t.id = any(array[s.id])
     and (t.epoch < s.epoch or t.epoch = s.epoch and t.lease_until is not null)
$$;

-- The same, for a lane that was just locked: its slots may be younger than what the statement saw when it began, and a
-- task that was queued and claimed since then would look removed. In PL/pgSQL, which looks anew.
create function pawl.held_slots_now(slots uuid[], epochs integer[]) returns table (id uuid, epoch integer)
  language plpgsql volatile as $$
begin
  return query select h.id, h.epoch from pawl.held_slots(slots, epochs) as h;
end $$;
`

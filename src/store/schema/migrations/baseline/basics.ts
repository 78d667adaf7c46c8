/** The store itself, its clock, and the events that every entity carries. */
export const basics = `
-- One row about the store: which history its feed belongs to, the server that it ran on last, and a fingerprint of the
-- guards that were laid last.
create table pawl.meta (
  only_row   boolean primary key default true check (only_row),
  generation uuid not null default gen_random_uuid(),
  system     text,
  guards     text
);
insert into pawl.meta default values;

-- The only clock. Tests move it by replacing this function. As plain SQL it is inlined and costs nothing.
create function pawl.clock() returns timestamptz language sql stable parallel safe as 'select now()';

-- One event: a transition into a state or, with a type, a request that must be provable. Its number is its position in
-- the history of its row, and the state before it is that of the previous step. Without a cause it has the usual cause
-- of its state; without an actor it was done by the holder of the lease.
create type pawl.step as (
  ts      timestamptz,
  epoch   integer,
  state   text,
  type    text,
  actor   text,
  cause   text,
  payload jsonb
);

-- The event with number n as a row, with the state before it and the usual words filled in.
create function pawl.event_of(id uuid, history pawl.step[], n integer) returns table (
  entity_id uuid, seq integer, epoch integer, ts timestamptz, type text, from_state text, to_state text, actor text,
  cause text, payload jsonb
) language sql immutable as $$
  select id, n, (history[n]).epoch, (history[n]).ts,
         coalesce((history[n]).type, 'task.' || case (history[n]).state
           when 'assigned' then 'claimed' when 'running' then 'started' else (history[n]).state end),
         (history[n - 1]).state, (history[n]).state,
         coalesce((history[n]).actor, (
           select h.actor from unnest(history) as h
            where h.epoch = (history[n]).epoch and h.state = 'assigned' and h.type is null)),
         coalesce((history[n]).cause, case (history[n]).state when 'queued' then 'enqueued'
           when 'assigned' then 'claimed' when 'running' then 'started' else 'reported_' || (history[n]).state end),
         (history[n]).payload
$$;

-- How often a task was claimed in its round. Every claim raises the epoch, and a round begins queued or blocked.
create function pawl.tries(by_now integer, history pawl.step[]) returns integer language sql immutable parallel safe as $$
  select by_now - (select max(h.epoch) from unnest(history) as h where h.state in ('queued', 'blocked')) $$;

-- An error message without the numbers and ids that differ from one occurrence to the next. Only its first 300
-- characters count.
create function pawl.gist(message text) returns text language sql immutable parallel safe as $$
  select regexp_replace(left(coalesce(message, ''), 300),
    '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9]+', '#', 'g') $$;

-- Rolls back a statement that cannot do all of its work because a concurrent one was faster. The caller repeats it.
create function pawl.try_again() returns boolean language plpgsql as $$
begin
  raise exception 'somebody else was faster' using errcode = 'serialization_failure';
end $$;
`

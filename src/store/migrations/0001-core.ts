/**
 * The tables of the core. States and their guards are not spelled here: lifecycle-sql.ts derives them from the kernel
 * after the last migration has run.
 *
 * What decides the speed: a task's row is in no index that a transition touches, so every transition is a HOT update.
 * What must be found by state lies in small tables beside it (due, claim, cancel, trouble), and a task carries its own
 * events, so that a transition and its event are one write.
 */
export const core = `
create table pawl.meta (
  only_row   boolean primary key default true check (only_row),
  generation uuid not null default gen_random_uuid(),
  system     text,
  guards     text
);
insert into pawl.meta default values;

-- The one clock. Tests move it by replacing this function; as plain SQL it is inlined and costs nothing.
create function pawl.clock() returns timestamptz language sql stable parallel safe as 'select now()';

-- One event: a transition into state, or (with a type of its own) a request that must be provable. Its number is its
-- place in the row's history; what it came from is the step before it. Without a cause it has the usual one of its
-- state, and without an actor it is the doing of whoever holds the lease.
create type pawl.step as (
  ts      timestamptz,
  epoch   integer,
  state   text,
  type    text,
  actor   text,
  cause   text,
  payload jsonb
);

-- What a claim looks through first: one small row per queue and priority (and, for jobs, per stage).
create table pawl.lane (
  id       integer generated always as identity primary key,
  queue    text collate "C" not null,
  stage_id uuid,
  priority integer not null,
  open     boolean not null default true,
  unique nulls not distinct (queue, stage_id, priority)
);

create table pawl.task_type (
  type       text collate "C" primary key,
  settings   jsonb not null default '{}',
  changed_at timestamptz not null default pawl.clock()
);

create table pawl.task (
  id             uuid not null,
  lane_id        integer not null,
  seq            integer not null,
  round          integer not null,
  epoch          integer not null,
  failures       integer not null default 0,
  losses         integer not null default 0,
  careful        boolean not null default false,
  partial        boolean not null default false,
  run_at         timestamptz not null,
  lease_until    timestamptz,
  started_at     timestamptz,
  ended_at       timestamptz,
  cancel_at      timestamptz,
  expire_at      timestamptz,
  keep_until     timestamptz,
  state          text collate "C" not null,
  type           text collate "C" not null,
  owner          text collate "C",
  job_id         uuid,
  stage_id       uuid,
  dedupe_key     text collate "C",
  -- The queue and key while this task stands for them; emptied when a later task takes the key over.
  dedupe_slot    text collate "C",
  correlation_id text collate "C",
  traceparent    text collate "C",
  -- What is only handed on is kept as it came: numbers and the order of keys stay what they were.
  payload        json not null,
  settings       jsonb,
  metadata       jsonb,
  progress       json,
  checkpoint     json,
  output         json,
  error          jsonb,
  history        pawl.step[] not null,
  constraint task_pkey primary key (id)
) with (fillfactor = 30, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_limit = 2000);
-- A row doubles as its history grows, and needs room for one version more: so a page begins at a third.
-- Only columns that no transition writes may stand in an index of this table.
create unique index task_dedupe on pawl.task (dedupe_slot) where dedupe_slot is not null;
create index task_correlation on pawl.task (correlation_id) where correlation_id is not null;

-- The tasks that may be claimed: what is queued or retrying. Tasks that were queued together lie together in one row,
-- under the first of their ids; a claim takes rows whole and puts back what it has no use for.
create table pawl.due (
  lane_id integer not null,
  run_at  timestamptz not null,
  id      uuid not null,
  ids     uuid[] not null,
  careful boolean not null default false,
  type    text collate "C" not null
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_limit = 2000);
create index due_order on pawl.due (lane_id, run_at, id);

-- What one claim won, until it has all been given up: where the rescue looks for leases that ran out.
create table pawl.claim (
  id      bigint generated always as identity primary key,
  look_at timestamptz not null,
  ids     uuid[] not null,
  epochs  integer[] not null
);
create index claim_look on pawl.claim (look_at);

-- Soft cancels of held tasks, until the task is ended or let go.
create table pawl.cancel (
  task_id uuid not null,
  epoch   integer not null,
  owner   text collate "C" not null,
  hard_at timestamptz not null,
  primary key (task_id, epoch)
);
create index cancel_owner on pawl.cancel (owner);

-- Times to live, until they pass.
create table pawl.expiry (
  at      timestamptz not null,
  task_id uuid not null,
  primary key (at, task_id)
);

-- Tasks that ended badly, with the evidence of those that were set aside.
create table pawl.trouble (
  task_id     uuid primary key,
  state       text collate "C" not null,
  reason_code text collate "C",
  evidence    jsonb
);
create index trouble_state on pawl.trouble (state, task_id);

-- Where a change stands in the feed. Its own transaction's number alone would not do: one that began early and then
-- waited for a task's lock writes after, and must stand after, whoever held it. The highest number given out so far is
-- never below its own and never one that is still to come, so what reads below the oldest running transaction misses
-- nothing. In PL/pgSQL, which looks anew: as inlined SQL it would see what the statement saw when it began.
create function pawl.feed_tx() returns bigint language plpgsql as $$
begin
  return greatest(pg_current_xact_id()::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1);
end $$;

-- Which entities a statement moved, and to which seq: the order of the feed. The events themselves are in the rows.
create table pawl.change (
  tx     bigint not null default pawl.feed_tx(),
  n      bigint generated always as identity (cache 1),
  at     timestamptz not null default now(),
  entity text collate "C" not null,
  ids    uuid[] not null,
  seqs   integer[] not null,
  primary key (tx, n)
);
create index change_at on pawl.change using brin (at);
-- Ids are random in their greater part: to compress them costs time and saves nothing.
alter table pawl.change alter column ids set storage external, alter column seqs set storage external;
alter table pawl.claim alter column ids set storage external, alter column epochs set storage external;

-- Heartbeats and progress: many, unnumbered, and soon forgotten.
create table pawl.pulse (
  entity_id uuid not null,
  epoch     integer not null,
  ts        timestamptz not null,
  type      text collate "C" not null,
  payload   jsonb
);
create index pulse_entity on pawl.pulse (entity_id, ts);
create index pulse_ts on pawl.pulse using brin (ts);

-- A worker process, and which claim its last sync made, so that a lost answer can be given again.
create table pawl.session (
  id         uuid primary key,
  worker     text not null,
  queues     text[] not null,
  started_at timestamptz not null,
  seen_at    timestamptz not null,
  sync_id    text,
  claim_id   bigint
) with (fillfactor = 50);

create table pawl.idempotency (
  holder     text not null,
  key        text not null,
  request    text not null,
  answer     jsonb,
  created_at timestamptz not null,
  primary key (holder, key)
);
create index idempotency_age on pawl.idempotency using brin (created_at);

create table pawl.job (
  id       uuid primary key,
  name     text not null,
  seq      integer not null,
  round    integer not null,
  state    text collate "C" not null,
  ended_at timestamptz,
  history  pawl.step[] not null
) with (fillfactor = 50);

create table pawl.stage (
  id       uuid primary key,
  job_id   uuid not null,
  name     text not null,
  seq      integer not null,
  round    integer not null,
  state    text collate "C" not null,
  ended_at timestamptz,
  history  pawl.step[] not null
) with (fillfactor = 50);

create table pawl.artifact (
  id       uuid primary key,
  task_id  uuid not null,
  uri      text not null,
  seq      integer not null,
  round    integer not null,
  state    text collate "C" not null,
  ended_at timestamptz,
  history  pawl.step[] not null
) with (fillfactor = 50);

-- One event as a row, with its number and what it came from.
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

-- A task as people read it.
create view pawl.task_view as
select t.id, l.queue, t.type, t.state, l.priority, t.seq, t.round, t.epoch, t.failures, t.losses, t.careful, t.partial,
       t.run_at, (t.history[1]).ts as created_at, (t.history[t.seq]).ts as changed_at,
       coalesce(t.started_at, (
         select max(h.ts) from unnest(t.history) as h where h.epoch = t.epoch and h.state = 'running')) as started_at,
       t.ended_at,
       t.lease_until, t.cancel_at, t.expire_at, t.keep_until, t.owner, t.job_id, t.stage_id, t.dedupe_key,
       t.correlation_id, t.traceparent, t.payload, t.settings, t.metadata, t.progress, t.checkpoint, t.output, t.error,
       trouble.evidence as dead_letter
  from pawl.task t
  join pawl.lane l on l.id = t.lane_id
  left join pawl.trouble on trouble.task_id = t.id;
`

/** Jobs and stages: their plans, their intents, and what their tasks have come to. */
export const jobs = `
alter table pawl.job
  add column priority       integer not null default 0,
  add column input          json,
  add column metadata       jsonb,
  add column correlation_id text collate "C",
  add column traceparent    text collate "C",
  -- What it was made of, for a clone; without the payloads, which are in the tasks.
  add column plan           jsonb not null default '{}',
  add column open           text collate "C" not null default 'sealed',
  -- How it will end, once somebody or something has decided it, and why.
  add column ends_as        text collate "C",
  add column ends_cause     text,
  add column error          jsonb,
  -- A task of it has started in this round.
  add column begun          boolean not null default false,
  add column compensated    boolean not null default false,
  -- Nobody sees it before all of it is written.
  add column visible        boolean not null default false,
  add column deadline_at    timestamptz,
  add column stale_seconds  double precision,
  add column progress_at    timestamptz not null default pawl.clock(),
  add column cloned_from    uuid;
create index job_name on pawl.job (name, id);
create index job_open on pawl.job (id) where ended_at is null;
create index job_deadline on pawl.job (deadline_at) where ended_at is null and deadline_at is not null;
create index job_correlation on pawl.job (correlation_id) where correlation_id is not null;

alter table pawl.stage
  add column ordinal    integer not null default 0,
  -- Its own work, or the undoing of another stage.
  add column kind       text collate "C" not null default 'work' check (kind in ('work', 'undo')),
  add column undoes     uuid,
  add column plan       jsonb not null default '{}',
  add column metadata   jsonb,
  add column lane_id    integer,
  add column open       text collate "C" not null default 'sealed',
  -- What its tasks have come to; tally holds what is still to be added.
  add column total      integer not null default 0,
  add column good       integer not null default 0,
  add column bad        integer not null default 0,
  add column partial    integer not null default 0,
  add column skipped    integer not null default 0,
  add column begun      boolean not null default false,
  -- Bad ones of earlier rounds: they count at the end, but stop nothing.
  add column bad_before integer not null default 0,
  -- Tasks that wait for it to open.
  add column blocked    integer not null default 0,
  -- The job's round in which it ended: what went bad in an earlier one counts at the end, but stops nothing.
  add column ended_in   integer,
  add column ends_as    text collate "C",
  add column ends_cause text,
  add column ends_hard  boolean not null default false,
  add column error      jsonb,
  add column held       boolean not null default false,
  add column approvals  jsonb not null default '[]',
  add column gate_until timestamptz,
  -- What is being done to its tasks, batch by batch, and how far it has come.
  add column errand     text collate "C" check (errand in ('release', 'fan out', 'pass over', 'call off', 'revive', 'reopen')),
  add column errand_at  uuid,
  -- Its open tasks have been called off, and the held ones told.
  add column called_off boolean not null default false,
  add column opening    text collate "C" check (opening in ('yes', 'no', 'error')),
  -- A list whose elements become tasks, and how many have.
  add column fan        json,
  add column fanned     integer not null default 0,
  add constraint stage_name_once unique (job_id, name, kind);
create index stage_order on pawl.stage (job_id, ordinal);
create index stage_waiting on pawl.stage (id) where state = 'waiting';
create index stage_gate on pawl.stage (gate_until) where gate_until is not null and ended_at is null;

-- Undoes the statement that finds out that it cannot be whole; whoever sent it sends it again.
create function pawl.try_again() returns boolean language plpgsql as $$
begin
  raise exception 'somebody else was faster' using errcode = 'serialization_failure';
end $$;

create index task_stage on pawl.task (stage_id, id) where stage_id is not null;

-- What settles have come to since the stage was last counted. A settle appends, and locks nobody.
create table pawl.tally (
  job_id   uuid not null,
  stage_id uuid not null,
  total    integer not null default 0,
  good     integer not null default 0,
  bad      integer not null default 0,
  partial  integer not null default 0,
  skipped  integer not null default 0,
  begun    integer not null default 0,
  blocked  integer not null default 0,
  at       timestamptz not null default pawl.clock()
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_limit = 2000);
create index tally_stage on pawl.tally (job_id, stage_id);

-- Jobs that somebody was working on: if he dies, the babysitter goes on.
create table pawl.errand (
  job_id uuid primary key,
  at     timestamptz not null default pawl.clock()
);
`

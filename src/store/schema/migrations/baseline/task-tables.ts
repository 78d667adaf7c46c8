/**
 * Tasks. A task's row is in no index that a transition touches, so every transition is a HOT update. Tasks that must be
 * found by state are listed in small tables beside it (due, claim, cancel, expiry, trouble). A task carries its own
 * events, so that a transition and its event are one write.
 */
export const taskTables = `
-- Settings of a task type, and the JSON Schema of its payloads as the last worker declared it.
create table pawl.task_type (
  type           text collate "C" primary key,
  settings       jsonb not null default '{}',
  changed_at     timestamptz not null default pawl.clock(),
  payload_schema json
);

-- One unit of work, with its payload, its result and its history.
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
  -- Queue and key while this task stands for them; null once a later task has taken the key over.
  dedupe_slot    text collate "C",
  correlation_id text collate "C",
  traceparent    text collate "C",
  -- Values that are only passed on are json and not jsonb, which keeps numbers and the order of keys as they were sent.
  payload        json not null,
  settings       jsonb,
  metadata       jsonb,
  progress       json,
  checkpoint     json,
  output         json,
  error          jsonb,
  history        pawl.step[] not null,
  -- It has registered files, which are decided on when it ends.
  files          boolean not null default false,
  constraint task_pkey primary key (id)
) with (fillfactor = 30, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_limit = 2000);
-- A row doubles in size as its history grows, and needs room for one more version, so pages start at a third.
-- An index of this table may only contain columns that no transition writes.
create unique index task_dedupe on pawl.task (dedupe_slot) where dedupe_slot is not null;
create index task_correlation on pawl.task (correlation_id) where correlation_id is not null;
create index task_stage on pawl.task (stage_id, id) where stage_id is not null;

-- The tasks that may be claimed: those that are queued or retrying. Tasks that were queued together share a row under
-- the first of their ids. A claim takes whole rows and puts back the ids that it does not need.
create table pawl.due (
  lane_id integer not null,
  run_at  timestamptz not null,
  id      uuid not null,
  ids     uuid[] not null,
  careful boolean not null default false,
  type    text collate "C" not null
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_limit = 2000);
create index due_order on pawl.due (lane_id, run_at, id);

-- The leases that one claim took, until all of them have ended. The rescue finds expired leases here.
create table pawl.claim (
  id      bigint generated always as identity primary key,
  look_at timestamptz not null,
  ids     uuid[] not null,
  epochs  integer[] not null
);
-- Most of an id is random: compressing arrays of ids takes time and saves nothing.
alter table pawl.claim alter column ids set storage external, alter column epochs set storage external;
create index claim_look on pawl.claim (look_at);

-- Soft cancels of held tasks, until the task has ended or its lease was given up.
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

-- Tasks that ended badly, with the columns that they are grouped by, and the evidence of dead letters.
create table pawl.trouble (
  task_id     uuid primary key,
  state       text collate "C" not null,
  reason_code text collate "C",
  evidence    jsonb,
  type        text collate "C",
  lane_id     integer,
  job_id      uuid,
  stage_id    uuid,
  gist        text collate "C",
  ended_at    timestamptz
);
create index trouble_state on pawl.trouble (state, task_id);

-- Ids of tasks and jobs that callers chose. Each is used once: under an id that is used again, a worker that was
-- thought dead could settle the new task, and the feed would mix the events of both. So an id is remembered for a while
-- after its task or job was deleted.
create table pawl.chosen_id (
  id       uuid primary key,
  freed_at timestamptz
);
create index chosen_id_freed on pawl.chosen_id (freed_at) where freed_at is not null;

-- The leases in a lane's slots that still hold their tasks. A deleted task is held by none. A task with a lower epoch
-- counts as held, because the transaction that raises its epoch is not visible yet.
create function pawl.held_slots(slots uuid[], epochs integer[]) returns table (id uuid, epoch integer)
  language sql stable as $$
  select s.id, s.epoch
    from unnest(slots, epochs) as s (id, epoch)
    join pawl.task t on t.id = any(array[s.id])
     and (t.epoch < s.epoch or t.epoch = s.epoch and t.lease_until is not null)
$$;

-- Like held_slots, for a lane that was locked by the same statement. Its slots may be younger than the statement's
-- snapshot, and a task that was queued and claimed since then would look deleted. PL/pgSQL takes a new snapshot.
create function pawl.held_slots_now(slots uuid[], epochs integer[]) returns table (id uuid, epoch integer)
  language plpgsql volatile as $$
begin
  return query select h.id, h.epoch from pawl.held_slots(slots, epochs) as h;
end $$;

-- A task as people read it.
create view pawl.task_view as
select t.id, l.queue, t.type, t.state, l.priority, t.seq, t.round, t.epoch, t.failures, t.losses, t.careful, t.partial,
       t.run_at, (t.history[1]).ts as created_at, (t.history[t.seq]).ts as changed_at,
       coalesce(t.started_at, (
         select max(h.ts) from unnest(t.history) as h where h.epoch = t.epoch and h.state = 'running')) as started_at,
       t.ended_at,
       t.lease_until, t.cancel_at, t.expire_at, t.keep_until, t.owner, t.job_id, t.stage_id, t.dedupe_key,
       t.correlation_id, t.traceparent, t.payload, t.settings, t.metadata, t.progress, t.checkpoint, t.output, t.error,
       trouble.evidence as dead_letter, pawl.tries(t.epoch, t.history) as tries
  from pawl.task t
  join pawl.lane l on l.id = t.lane_id
  left join pawl.trouble on trouble.task_id = t.id;
`

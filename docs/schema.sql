-- Dumped from a database by `npm run docs`; do not edit. src/store/schema/migrations creates this schema.

create schema pawl;

-- One event: a transition into a state or, with a type, a request that must be provable. Its number is its position in
-- the history of its row, and the state before it is that of the previous step. Without a cause it has the usual cause
-- of its state; without an actor it was done by the holder of the lease.
create type pawl.step as (
  ts timestamp with time zone,
  epoch integer,
  state text,
  type text,
  actor text,
  cause text,
  payload jsonb
);

set check_function_bodies = off;

-- The only clock. Tests move it by replacing this function. As plain SQL it is inlined and costs nothing.
CREATE FUNCTION pawl.clock()
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$select now()$function$;

-- About how many bytes a stored value has as text. Finding out the size of a compressed value would mean reading it, so
-- it counts eight times.
CREATE FUNCTION pawl.estimated_bytes(value anyelement)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select coalesce(pg_column_size(value), 0)::bigint * case when pg_column_compression(value) is null then 1 else 8 end $function$;

-- The event with number n as a row, with the state before it and the usual words filled in.
CREATE FUNCTION pawl.event_of(id uuid, history pawl.step[], n integer)
 RETURNS TABLE(entity_id uuid, seq integer, epoch integer, ts timestamp with time zone, type text, from_state text, to_state text, actor text, cause text, payload jsonb)
 LANGUAGE sql
 IMMUTABLE
AS $function$
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
$function$;

-- The position of a change in the feed. The number of its own transaction is not enough: a transaction that began early
-- and then waited for a task's lock writes after the holder of the lock, and must come after it in the feed. The highest
-- number assigned so far is never below its own and never that of a future transaction, so a reader that stays below
-- the oldest running transaction misses nothing. PL/pgSQL takes a new snapshot; inlined SQL would use the one with
-- which the statement began.
CREATE FUNCTION pawl.feed_tx()
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
begin
  return greatest(pg_current_xact_id()::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1);
end $function$;

-- An error message without the numbers and ids that differ from one occurrence to the next. Only its first 300
-- characters count.
CREATE FUNCTION pawl.gist(message text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select regexp_replace(left(coalesce(message, ''), 300),
    '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9]+', '#', 'g') $function$;

-- The leases in a lane's slots that still hold their tasks. A deleted task is held by none. A task with a lower epoch
-- counts as held, because the transaction that raises its epoch is not visible yet.
CREATE FUNCTION pawl.held_slots(slots uuid[], epochs integer[])
 RETURNS TABLE(id uuid, epoch integer)
 LANGUAGE sql
 STABLE
AS $function$
  select s.id, s.epoch
    from unnest(slots, epochs) as s (id, epoch)
    join pawl.task t on t.id = any(array[s.id])
     and (t.epoch < s.epoch or t.epoch = s.epoch and t.lease_until is not null)
$function$;

-- Like held_slots, for a lane that was locked by the same statement. Its slots may be younger than the statement's
-- snapshot, and a task that was queued and claimed since then would look deleted. PL/pgSQL takes a new snapshot.
CREATE FUNCTION pawl.held_slots_now(slots uuid[], epochs integer[])
 RETURNS TABLE(id uuid, epoch integer)
 LANGUAGE plpgsql
AS $function$
begin
  return query select h.id, h.epoch from pawl.held_slots(slots, epochs) as h;
end $function$;

-- When an ended task may be removed; null: not before somebody has acted on it. Dead letters have a retention of their
-- own, and stay until the task's date (keep_until) at least.
CREATE FUNCTION pawl.kept_until(state text, keep_until timestamp with time zone, ended_at timestamp with time zone, own jsonb, typed jsonb)
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$
  select case when state <> 'dead_lettered'
              then coalesce(keep_until, ended_at + make_interval(secs => pawl.setting(own, typed, 'keepSeconds')))
              when pawl.setting(own, typed, 'keepDeadLetterSeconds') is not null
              then greatest(keep_until,
                            ended_at + make_interval(secs => pawl.setting(own, typed, 'keepDeadLetterSeconds')))
         end
$function$;

-- The lane of a stand-alone task with these settings (its own and those of its type), created if it is missing. When
-- two transactions create the same lane at once, the second waits for the first and finds its lane.
CREATE FUNCTION pawl.lane_for(queue text, priority integer, own jsonb, typed jsonb)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
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
end $function$;

-- A lease has one end: its own, or two missed heartbeats. least() passes over a heartbeat that is null.
CREATE FUNCTION pawl.lease_seconds(own jsonb, typed jsonb)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select least(pawl.setting(own, typed, 'leaseSeconds'), 2 * pawl.setting(own, typed, 'heartbeatSeconds'))
$function$;

CREATE FUNCTION pawl.refuse_artifact_move()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'INSERT' then
    raise exception 'artifact %: it cannot begin as % with seq %', new.id, new.state, new.seq
      using errcode = 'check_violation', constraint = 'artifact_begins_legally';
  elsif tg_op = 'DELETE' then
    raise exception 'artifact %: it is % and cannot be deleted before it has ended', old.id, old.state
      using errcode = 'check_violation', constraint = 'artifact_ends_before_it_goes';
  elsif new.id = old.id and record_image_eq(row(new.history[:old.seq]), row(old.history))
    and concat_ws(' ', old.state, (new.history[old.seq + 1]).state, new.state, new.seq - old.seq, new.round - old.round) = any ('{registered uploaded uploaded 1 0, uploaded stored stored 1 0, registered error error 1 0, uploaded error error 1 0, registered discarded discarded 1 0, uploaded discarded discarded 1 0, registered registered 0 0, registered registered registered 1 0, uploaded uploaded 0 0, uploaded uploaded uploaded 1 0, stored stored 0 0, stored stored stored 1 0, error error 0 0, error error error 1 0, discarded discarded 0 0, discarded discarded discarded 1 0}') then
    return null;
  end if;
  raise exception 'artifact %: % -> % with seq % -> % is not a move', old.id, old.state, new.state, old.seq, new.seq
    using errcode = 'check_violation', constraint = 'artifact_moves_legally';
end $function$;

CREATE FUNCTION pawl.refuse_job_move()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'INSERT' then
    raise exception 'job %: it cannot begin as % with seq %', new.id, new.state, new.seq
      using errcode = 'check_violation', constraint = 'job_begins_legally';
  elsif tg_op = 'DELETE' then
    raise exception 'job %: it is % and cannot be deleted before it has ended', old.id, old.state
      using errcode = 'check_violation', constraint = 'job_ends_before_it_goes';
  elsif new.id = old.id and record_image_eq(row(new.history[:old.seq]), row(old.history))
    and concat_ws(' ', old.state, (new.history[old.seq + 1]).state, new.state, new.seq - old.seq, new.round - old.round) = any ('{created pending pending 1 0, pending running running 1 0, pending paused paused 1 0, running paused paused 1 0, paused pending pending 1 0, paused running running 1 0, pending succeeded succeeded 1 0, running succeeded succeeded 1 0, pending partial partial 1 0, running partial partial 1 0, created stopping stopping 1 0, pending stopping stopping 1 0, running stopping stopping 1 0, paused stopping stopping 1 0, stopping compensating compensating 1 0, created failed failed 1 0, pending failed failed 1 0, running failed failed 1 0, paused failed failed 1 0, stopping failed failed 1 0, compensating failed failed 1 0, created cancelled cancelled 1 0, pending cancelled cancelled 1 0, running cancelled cancelled 1 0, paused cancelled cancelled 1 0, stopping cancelled cancelled 1 0, compensating cancelled cancelled 1 0, created expired expired 1 0, pending expired expired 1 0, running expired expired 1 0, paused expired expired 1 0, stopping expired expired 1 0, compensating expired expired 1 0, succeeded pending pending 1 1, partial pending pending 1 1, failed pending pending 1 1, cancelled pending pending 1 1, expired pending pending 1 1, pending running succeeded 2 0, pending running partial 2 0, pending running failed 2 0, created created 0 0, created created created 1 0, pending pending 0 0, pending pending pending 1 0, running running 0 0, running running running 1 0, paused paused 0 0, paused paused paused 1 0, stopping stopping 0 0, stopping stopping stopping 1 0, compensating compensating 0 0, compensating compensating compensating 1 0, succeeded succeeded 0 0, succeeded succeeded succeeded 1 0, partial partial 0 0, partial partial partial 1 0, failed failed 0 0, failed failed failed 1 0, cancelled cancelled 0 0, cancelled cancelled cancelled 1 0, expired expired 0 0, expired expired expired 1 0}') then
    return null;
  end if;
  raise exception 'job %: % -> % with seq % -> % is not a move', old.id, old.state, new.state, old.seq, new.seq
    using errcode = 'check_violation', constraint = 'job_moves_legally';
end $function$;

CREATE FUNCTION pawl.refuse_stage_move()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'INSERT' then
    raise exception 'stage %: it cannot begin as % with seq %', new.id, new.state, new.seq
      using errcode = 'check_violation', constraint = 'stage_begins_legally';
  elsif tg_op = 'DELETE' then
    raise exception 'stage %: it is % and cannot be deleted before it has ended', old.id, old.state
      using errcode = 'check_violation', constraint = 'stage_ends_before_it_goes';
  elsif new.id = old.id and record_image_eq(row(new.history[:old.seq]), row(old.history))
    and concat_ws(' ', old.state, (new.history[old.seq + 1]).state, new.state, new.seq - old.seq, new.round - old.round) = any ('{created pending pending 1 0, created waiting waiting 1 0, pending waiting waiting 1 0, running waiting waiting 1 0, waiting pending pending 1 0, waiting running running 1 0, pending running running 1 0, pending succeeded succeeded 1 0, running succeeded succeeded 1 0, pending partial partial 1 0, running partial partial 1 0, created failed failed 1 0, pending failed failed 1 0, waiting failed failed 1 0, running failed failed 1 0, stopping failed failed 1 0, created skipped skipped 1 0, pending skipped skipped 1 0, pending stopping stopping 1 0, waiting stopping stopping 1 0, running stopping stopping 1 0, created cancelled cancelled 1 0, pending cancelled cancelled 1 0, waiting cancelled cancelled 1 0, running cancelled cancelled 1 0, stopping cancelled cancelled 1 0, failed created created 1 1, cancelled created created 1 1, partial created created 1 1, skipped created created 1 1, pending running succeeded 2 0, pending running partial 2 0, pending running failed 2 0, created created 0 0, created created created 1 0, pending pending 0 0, pending pending pending 1 0, running running 0 0, running running running 1 0, waiting waiting 0 0, waiting waiting waiting 1 0, stopping stopping 0 0, stopping stopping stopping 1 0, succeeded succeeded 0 0, succeeded succeeded succeeded 1 0, skipped skipped 0 0, skipped skipped skipped 1 0, partial partial 0 0, partial partial partial 1 0, failed failed 0 0, failed failed failed 1 0, cancelled cancelled 0 0, cancelled cancelled cancelled 1 0}') then
    return null;
  end if;
  raise exception 'stage %: % -> % with seq % -> % is not a move', old.id, old.state, new.state, old.seq, new.seq
    using errcode = 'check_violation', constraint = 'stage_moves_legally';
end $function$;

CREATE FUNCTION pawl.refuse_task_move()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'INSERT' then
    raise exception 'task %: it cannot begin as % with seq %', new.id, new.state, new.seq
      using errcode = 'check_violation', constraint = 'task_begins_legally';
  elsif tg_op = 'DELETE' then
    raise exception 'task %: it is % and cannot be deleted before it has ended', old.id, old.state
      using errcode = 'check_violation', constraint = 'task_ends_before_it_goes';
  elsif new.id = old.id and record_image_eq(row(new.history[:old.seq]), row(old.history))
    and concat_ws(' ', old.state, (new.history[old.seq + 1]).state, new.state, new.seq - old.seq, new.round - old.round, new.epoch - old.epoch) = any ('{blocked queued queued 1 0 0, queued assigned assigned 1 0 1, retrying assigned assigned 1 0 1, assigned running running 1 0 0, running succeeded succeeded 1 0 0, running skipped skipped 1 0 0, blocked skipped skipped 1 0 0, queued skipped skipped 1 0 0, retrying skipped skipped 1 0 0, assigned retrying retrying 1 0 0, running retrying retrying 1 0 0, assigned failed failed 1 0 0, running failed failed 1 0 0, blocked cancelled cancelled 1 0 0, queued cancelled cancelled 1 0 0, retrying cancelled cancelled 1 0 0, assigned cancelled cancelled 1 0 0, running cancelled cancelled 1 0 0, blocked expired expired 1 0 0, queued expired expired 1 0 0, retrying expired expired 1 0 0, assigned expired expired 1 0 0, running expired expired 1 0 0, queued dead_lettered dead_lettered 1 0 0, retrying dead_lettered dead_lettered 1 0 0, assigned dead_lettered dead_lettered 1 0 0, running dead_lettered dead_lettered 1 0 0, cancelled queued queued 1 1 0, cancelled blocked blocked 1 1 0, failed queued queued 1 1 0, failed blocked blocked 1 1 0, expired queued queued 1 1 0, expired blocked blocked 1 1 0, dead_lettered queued queued 1 1 0, dead_lettered blocked blocked 1 1 0, skipped blocked blocked 1 1 0, assigned running succeeded 2 0 0, assigned running skipped 2 0 0, assigned running retrying 2 0 0, assigned running failed 2 0 0, assigned running cancelled 2 0 0, assigned running dead_lettered 2 0 0, queued assigned running 2 0 1, retrying assigned running 2 0 1, blocked blocked 0 0 0, blocked blocked blocked 1 0 0, queued queued 0 0 0, queued queued queued 1 0 0, assigned assigned 0 0 0, assigned assigned assigned 1 0 0, running running 0 0 0, running running running 1 0 0, retrying retrying 0 0 0, retrying retrying retrying 1 0 0, succeeded succeeded 0 0 0, succeeded succeeded succeeded 1 0 0, skipped skipped 0 0 0, skipped skipped skipped 1 0 0, failed failed 0 0 0, failed failed failed 1 0 0, cancelled cancelled 0 0 0, cancelled cancelled cancelled 1 0 0, expired expired 0 0 0, expired expired expired 1 0 0, dead_lettered dead_lettered 0 0 0, dead_lettered dead_lettered dead_lettered 1 0 0}') then
    return null;
  end if;
  raise exception 'task %: % -> % with seq % -> % is not a move', old.id, old.state, new.state, old.seq, new.seq
    using errcode = 'check_violation', constraint = 'task_moves_legally';
end $function$;

CREATE FUNCTION pawl.setting(own jsonb, typed jsonb, name text)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select case when own ? name then (own->>name)::float8
              when typed ? name then (typed->>name)::float8
              else ('{"leaseSeconds":60,"heartbeatSeconds":10,"timeoutSeconds":null,"graceSeconds":30,"expireInSeconds":null,"keepSeconds":1209600,"keepDeadLetterSeconds":null,"dedupeSeconds":0,"softDeadlineSeconds":null,"hardDeadlineSeconds":null,"deadLetter":"exhausted","attempts":3,"losses":3,"delaySeconds":0.5,"factor":2,"maxSeconds":60,"jitter":true}'::jsonb->>name)::float8 end
$function$;

-- How often a task was claimed in its round. Every claim raises the epoch, and a round begins queued or blocked.
CREATE FUNCTION pawl.tries(by_now integer, history pawl.step[])
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select by_now - (select max(h.epoch) from unnest(history) as h where h.state in ('queued', 'blocked')) $function$;

-- Rolls back a statement that cannot do all of its work because a concurrent one was faster. The caller repeats it.
CREATE FUNCTION pawl.try_again()
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'somebody else was faster' using errcode = 'serialization_failure';
end $function$;

-- The ledger of files that tasks write.
create table pawl.artifact (
  id uuid not null,
  task_id uuid not null,
  uri text not null,
  seq integer not null,
  round integer not null,
  state text collate "C" not null,
  ended_at timestamp with time zone,
  history pawl.step[] not null,
  job_id uuid,
  stage_id uuid,
  epoch integer not null default 0,
  name text collate "C" not null default ''::text,
  staged_uri text,
  size bigint,
  sha256 text collate "C",
  won boolean not null default false,
  linked uuid,
  error text,
  at timestamp with time zone not null default pawl.clock(),
  tries integer not null default 0,
  constraint artifact_pkey PRIMARY KEY (id),
  constraint artifact_ended_iff_final CHECK ((((ended_at IS NOT NULL) = (state = ANY ('{stored,error,discarded}'::text[]))) IS TRUE)),
  constraint artifact_last_event_is_the_row CHECK (((history[seq].state = state) IS TRUE)),
  constraint artifact_one_event_per_seq CHECK (((cardinality(history) = seq) IS TRUE))
) with (fillfactor = 50);
CREATE INDEX artifact_by_uri ON pawl.artifact USING btree (md5(uri));
CREATE INDEX artifact_of_job ON pawl.artifact USING btree (job_id, id);
CREATE INDEX artifact_of_stage ON pawl.artifact USING btree (stage_id, name) WHERE (state = 'stored'::text);
CREATE INDEX artifact_of_task ON pawl.artifact USING btree (task_id, epoch);
CREATE UNIQUE INDEX artifact_one_per_uri ON pawl.artifact USING btree (COALESCE(job_id, task_id), md5(uri)) WHERE (state = ANY (ARRAY['registered'::text, 'uploaded'::text, 'stored'::text]));
CREATE INDEX artifact_open ON pawl.artifact USING btree (job_id) WHERE (ended_at IS NULL);
CREATE INDEX artifact_to_store ON pawl.artifact USING btree (at) WHERE (won AND (state = 'uploaded'::text));
CREATE INDEX artifact_to_sweep ON pawl.artifact USING btree (at) WHERE ((staged_uri IS NOT NULL) AND (ended_at IS NOT NULL));
CREATE INDEX artifact_unstored ON pawl.artifact USING btree (stage_id) WHERE (won AND (state = ANY (ARRAY['uploaded'::text, 'error'::text])));
CREATE TRIGGER artifact_begins_legally BEFORE INSERT ON pawl.artifact FOR EACH ROW
  WHEN ((((new.round = 1) AND ((new.seq = 1) AND (new.state = 'registered'::text))) IS NOT TRUE))
  EXECUTE FUNCTION pawl.refuse_artifact_move();
CREATE TRIGGER artifact_ends_before_it_goes BEFORE DELETE ON pawl.artifact FOR EACH ROW
  WHEN (((old.state = ANY ('{stored,error,discarded}'::text[])) IS NOT TRUE))
  EXECUTE FUNCTION pawl.refuse_artifact_move();
CREATE TRIGGER artifact_moves_legally AFTER UPDATE ON pawl.artifact FOR EACH ROW
  EXECUTE FUNCTION pawl.refuse_artifact_move();

-- Soft cancels of held tasks, until the task has ended or its lease was given up.
create table pawl.cancel (
  task_id uuid not null,
  epoch integer not null,
  owner text collate "C" not null,
  hard_at timestamp with time zone not null,
  constraint cancel_pkey PRIMARY KEY (task_id, epoch)
);
CREATE INDEX cancel_owner ON pawl.cancel USING btree (owner);

-- The order of the feed: which entities a statement changed, and up to which seq. The events are in the entities' rows.
create table pawl.change (
  tx bigint not null default pawl.feed_tx(),
  n bigint not null generated always as identity,
  at timestamp with time zone not null default now(),
  entity text collate "C" not null,
  ids uuid[] not null,
  seqs integer[] not null,
  constraint change_pkey PRIMARY KEY (tx, n)
);
alter table pawl.change alter column ids set storage external;
alter table pawl.change alter column seqs set storage external;
CREATE INDEX change_at ON pawl.change USING brin (at);

-- Ids of tasks and jobs that callers chose. Each is used once: under an id that is used again, a worker that was
-- thought dead could settle the new task, and the feed would mix the events of both. So an id is remembered for a while
-- after its task or job was deleted.
create table pawl.chosen_id (
  id uuid not null,
  freed_at timestamp with time zone,
  constraint chosen_id_pkey PRIMARY KEY (id)
);
CREATE INDEX chosen_id_freed ON pawl.chosen_id USING btree (freed_at) WHERE (freed_at IS NOT NULL);

-- The leases that one claim took, until all of them have ended. The rescue finds expired leases here.
create table pawl.claim (
  id bigint not null generated always as identity,
  look_at timestamp with time zone not null,
  ids uuid[] not null,
  epochs integer[] not null,
  constraint claim_pkey PRIMARY KEY (id)
);
alter table pawl.claim alter column ids set storage external;
alter table pawl.claim alter column epochs set storage external;
CREATE INDEX claim_look ON pawl.claim USING btree (look_at);

-- The position in the feed up to which events were counted in stat. The process that counts locks this row and moves
-- it in the transaction of its counts, so every event is counted once.
create table pawl.counted (
  only_row boolean not null default true,
  generation uuid not null,
  tx bigint not null default 0,
  n bigint not null default 0,
  at timestamp with time zone,
  constraint counted_pkey PRIMARY KEY (only_row),
  constraint counted_only_row_check CHECK (only_row)
);

-- A digest of a task's inputs and command. A task with the same digest can reuse the files of an earlier one.
create table pawl.datum (
  task_id uuid not null,
  digest text collate "C" not null,
  constraint datum_pkey PRIMARY KEY (task_id)
);
CREATE INDEX datum_digest ON pawl.datum USING btree (digest);

-- The depth of each queue, once a minute. An empty queue has no row.
create table pawl.depth (
  at timestamp with time zone not null,
  queue text collate "C" not null,
  due bigint not null,
  held bigint not null,
  constraint depth_pkey PRIMARY KEY (at, queue)
);

-- The tasks that may be claimed: those that are queued or retrying. Tasks that were queued together share a row under
-- the first of their ids. A claim takes whole rows and puts back the ids that it does not need.
create table pawl.due (
  lane_id integer not null,
  run_at timestamp with time zone not null,
  id uuid not null,
  ids uuid[] not null,
  careful boolean not null default false,
  type text collate "C" not null,
  bytes bigint
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_limit = 2000);
CREATE INDEX due_order ON pawl.due USING btree (lane_id, run_at, id);

-- Jobs with batches left to do. If the process that does them dies, the babysitter continues.
create table pawl.errand (
  job_id uuid not null,
  at timestamp with time zone not null default pawl.clock(),
  constraint errand_pkey PRIMARY KEY (job_id)
);

-- Times to live, until they pass.
create table pawl.expiry (
  at timestamp with time zone not null,
  task_id uuid not null,
  constraint expiry_pkey PRIMARY KEY (at, task_id)
);

-- Responses to requests with an idempotency key, so that a repeated request gets the first response.
create table pawl.idempotency (
  holder text not null,
  key text not null,
  request text not null,
  answer jsonb,
  created_at timestamp with time zone not null,
  constraint idempotency_pkey PRIMARY KEY (holder, key)
);
CREATE INDEX idempotency_age ON pawl.idempotency USING brin (created_at);

-- The files and folders that a task reads.
create table pawl.input (
  task_id uuid not null,
  uri text collate "C" not null
);
CREATE INDEX input_by_uri ON pawl.input USING btree (md5(uri));
CREATE INDEX input_of_task ON pawl.input USING btree (task_id);

-- A graph of stages that is run as one.
create table pawl.job (
  id uuid not null,
  name text not null,
  seq integer not null,
  round integer not null,
  state text collate "C" not null,
  ended_at timestamp with time zone,
  history pawl.step[] not null,
  priority integer not null default 0,
  input json,
  metadata jsonb,
  correlation_id text collate "C",
  traceparent text collate "C",
  plan jsonb not null default '{}'::jsonb,
  open text collate "C" not null default 'sealed'::text,
  ends_as text collate "C",
  ends_cause text,
  error jsonb,
  begun boolean not null default false,
  compensated boolean not null default false,
  visible boolean not null default false,
  deadline_at timestamp with time zone,
  stale_seconds double precision,
  progress_at timestamp with time zone not null default pawl.clock(),
  cloned_from uuid,
  n bigint not null generated by default as identity,
  condition_steps integer not null default 0,
  constraint job_pkey PRIMARY KEY (id),
  constraint job_ended_iff_final CHECK ((((ended_at IS NOT NULL) = (state = ANY ('{succeeded,partial,failed,cancelled,expired}'::text[]))) IS TRUE)),
  constraint job_last_event_is_the_row CHECK (((history[seq].state = state) IS TRUE)),
  constraint job_one_event_per_seq CHECK (((cardinality(history) = seq) IS TRUE))
) with (fillfactor = 50);
CREATE INDEX job_correlation ON pawl.job USING btree (correlation_id) WHERE (correlation_id IS NOT NULL);
CREATE INDEX job_deadline ON pawl.job USING btree (deadline_at) WHERE ((ended_at IS NULL) AND (deadline_at IS NOT NULL));
CREATE INDEX job_ended ON pawl.job USING btree (ended_at) WHERE (ended_at IS NOT NULL);
CREATE UNIQUE INDEX job_n ON pawl.job USING btree (n);
CREATE INDEX job_name ON pawl.job USING btree (name, id);
CREATE INDEX job_open ON pawl.job USING btree (id) WHERE (ended_at IS NULL);
CREATE TRIGGER job_begins_legally BEFORE INSERT ON pawl.job FOR EACH ROW
  WHEN ((((new.round = 1) AND (((new.seq = 1) AND (new.state = 'created'::text))
  OR ((new.seq = 2) AND (new.history[1].state = 'created'::text) AND (new.state = 'pending'::text)))) IS NOT TRUE))
  EXECUTE FUNCTION pawl.refuse_job_move();
CREATE TRIGGER job_ends_before_it_goes BEFORE DELETE ON pawl.job FOR EACH ROW
  WHEN (((old.state = ANY ('{succeeded,partial,failed,cancelled,expired}'::text[])) IS NOT TRUE))
  EXECUTE FUNCTION pawl.refuse_job_move();
CREATE TRIGGER job_moves_legally AFTER UPDATE ON pawl.job FOR EACH ROW
  EXECUTE FUNCTION pawl.refuse_job_move();

-- Keys of the HTTP API. A key has 256 random bits, so a fast hash of it is as safe as a slow one.
create table pawl.key (
  id uuid not null,
  name text not null,
  role text not null,
  queues text[],
  hash text not null,
  created_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  created_by text,
  revoked_by text,
  roles text[],
  constraint key_pkey PRIMARY KEY (id),
  constraint key_hash_key UNIQUE (hash),
  constraint key_revoked_by_somebody CHECK (((revoked_by IS NULL) OR (revoked_at IS NOT NULL))),
  constraint key_roles_begin_with_role CHECK ((roles[1] = role))
);

-- One row per queue and priority (and per class of deadlines) for stand-alone tasks, and one per stage. Pausing,
-- limiting and reordering work changes lanes and never the tasks in them.
create table pawl.lane (
  id integer not null generated always as identity,
  queue text collate "C" not null,
  stage_id uuid,
  priority integer not null,
  open boolean not null default true,
  job_id uuid,
  rank integer not null default 0,
  parallelism integer,
  slots uuid[] not null default '{}'::uuid[],
  slot_epochs integer[] not null default '{}'::integer[],
  soft_at timestamp with time zone,
  hard_at timestamp with time zone,
  since timestamp with time zone not null default pawl.clock(),
  sla text collate "C",
  constraint lane_pkey PRIMARY KEY (id),
  constraint lane_key UNIQUE NULLS NOT DISTINCT (queue, stage_id, priority, sla),
  constraint lane_parallelism_check CHECK ((parallelism > 0)),
  constraint lane_slots_are_leases CHECK ((cardinality(slots) = cardinality(slot_epochs)))
) with (fillfactor = 50);
CREATE INDEX lane_job ON pawl.lane USING btree (job_id) WHERE (job_id IS NOT NULL);
CREATE INDEX lane_open ON pawl.lane USING btree (id) WHERE open;
CREATE INDEX lane_order ON pawl.lane USING btree (queue, rank DESC, id) WHERE open;
CREATE INDEX lane_stage ON pawl.lane USING btree (stage_id) WHERE (stage_id IS NOT NULL);

-- Stages whose input files are being listed, and when the next process may continue.
create table pawl.listing (
  stage_id uuid not null,
  job_id uuid not null,
  at timestamp with time zone not null default pawl.clock(),
  tries integer not null default 0,
  error text,
  constraint listing_pkey PRIMARY KEY (stage_id)
);

-- Lines that handlers log: many, without a seq, and kept only for a short time. The worker numbers the lines of an
-- attempt, so a line that is sent twice is stored once.
create table pawl.log (
  task_id uuid not null,
  epoch integer not null,
  n integer not null,
  at timestamp with time zone not null,
  level text collate "C" not null,
  message text not null,
  facts json,
  constraint log_pkey PRIMARY KEY (task_id, epoch, n),
  constraint log_level_check CHECK ((level = ANY (ARRAY['debug'::text, 'info'::text, 'warn'::text, 'error'::text])))
);
CREATE INDEX log_at ON pawl.log USING brin (at);

-- One row about the store: which history its feed belongs to, the server that it ran on last, and a fingerprint of the
-- guards that were laid last.
create table pawl.meta (
  only_row boolean not null default true,
  generation uuid not null default gen_random_uuid(),
  system text,
  guards text,
  timeline text,
  constraint meta_pkey PRIMARY KEY (only_row),
  constraint meta_only_row_check CHECK (only_row)
);

-- The versions of the schema that were applied, and when.
create table pawl.migration (
  version integer not null,
  at timestamp with time zone not null default now(),
  constraint migration_pkey PRIMARY KEY (version)
);

-- Heartbeats and progress: many, without a seq, and kept only for a short time.
create table pawl.pulse (
  entity_id uuid not null,
  epoch integer not null,
  ts timestamp with time zone not null,
  type text collate "C" not null,
  payload jsonb
);
CREATE INDEX pulse_entity ON pawl.pulse USING btree (entity_id, ts);
CREATE INDEX pulse_ts ON pawl.pulse USING brin (ts);

-- Dead letters that are being redriven. The request selects them once. They are revived in order, and the progress is
-- written in the same transaction, so another process can continue at the right place.
create table pawl.redrive (
  id uuid not null,
  actor text not null,
  reason text,
  rate double precision,
  payload json,
  created_at timestamp with time zone not null default pawl.clock(),
  at timestamp with time zone not null default pawl.clock(),
  ended_at timestamp with time zone,
  ids uuid[] not null,
  total integer not null,
  seen integer not null default 0,
  redriven integer not null default 0,
  refused integer not null default 0,
  refusals jsonb not null default '[]'::jsonb,
  constraint redrive_pkey PRIMARY KEY (id),
  constraint redrive_adds_up CHECK (((seen = (redriven + refused)) AND (seen <= total)))
);
alter table pawl.redrive alter column ids set storage external;
CREATE INDEX redrive_open ON pawl.redrive USING btree (at) WHERE (ended_at IS NULL);

-- The Kubernetes Job that was started for a round of a stage.
create table pawl.run (
  stage_id uuid not null,
  round integer not null,
  namespace text not null,
  made_at timestamp with time zone not null default pawl.clock(),
  missing_since timestamp with time zone,
  stopped_at timestamp with time zone,
  constraint run_pkey PRIMARY KEY (stage_id, round)
);

-- A worker process, and the claim of its last sync, so that a lost response can be sent again.
create table pawl.session (
  id uuid not null,
  worker text not null,
  queues text[] not null,
  started_at timestamp with time zone not null,
  seen_at timestamp with time zone not null,
  sync_id text,
  claim_id bigint,
  slots integer,
  constraint session_pkey PRIMARY KEY (id)
) with (fillfactor = 50);

-- A part of a job: tasks that become claimable together, once the stages that it needs have ended.
create table pawl.stage (
  id uuid not null,
  job_id uuid not null,
  name text not null,
  seq integer not null,
  round integer not null,
  state text collate "C" not null,
  ended_at timestamp with time zone,
  history pawl.step[] not null,
  ordinal integer not null default 0,
  kind text collate "C" not null default 'work'::text,
  undoes uuid,
  plan jsonb not null default '{}'::jsonb,
  metadata jsonb,
  lane_id integer,
  open text collate "C" not null default 'sealed'::text,
  total integer not null default 0,
  good integer not null default 0,
  bad integer not null default 0,
  partial integer not null default 0,
  skipped integer not null default 0,
  begun boolean not null default false,
  bad_before integer not null default 0,
  blocked integer not null default 0,
  ended_in integer,
  ends_as text collate "C",
  ends_cause text,
  ends_hard boolean not null default false,
  error jsonb,
  held boolean not null default false,
  approvals jsonb not null default '[]'::jsonb,
  gate_until timestamp with time zone,
  errand text collate "C",
  errand_at uuid,
  called_off boolean not null default false,
  opening text collate "C",
  fan json,
  fanned integer not null default 0,
  listing text collate "C",
  list_at jsonb,
  constraint stage_pkey PRIMARY KEY (id),
  constraint stage_name_once UNIQUE (job_id, name, kind),
  constraint stage_ended_iff_final CHECK ((((ended_at IS NOT NULL) = (state = ANY ('{succeeded,skipped,partial,failed,cancelled}'::text[]))) IS TRUE)),
  constraint stage_errand_check CHECK ((errand = ANY (ARRAY['release'::text, 'fan out'::text, 'pass over'::text, 'call off'::text, 'revive'::text, 'reopen'::text]))),
  constraint stage_kind_check CHECK ((kind = ANY (ARRAY['work'::text, 'undo'::text]))),
  constraint stage_last_event_is_the_row CHECK (((history[seq].state = state) IS TRUE)),
  constraint stage_listing_check CHECK ((listing = ANY (ARRAY['wanted'::text, 'under way'::text, 'done'::text]))),
  constraint stage_one_event_per_seq CHECK (((cardinality(history) = seq) IS TRUE)),
  constraint stage_opening_check CHECK ((opening = ANY (ARRAY['yes'::text, 'no'::text, 'error'::text])))
) with (fillfactor = 50);
CREATE INDEX stage_gate ON pawl.stage USING btree (gate_until) WHERE ((gate_until IS NOT NULL) AND (ended_at IS NULL));
CREATE INDEX stage_order ON pawl.stage USING btree (job_id, ordinal);
CREATE INDEX stage_waiting ON pawl.stage USING btree (id) WHERE (state = 'waiting'::text);
CREATE INDEX stage_with_files ON pawl.stage USING btree (id) WHERE ((ended_at IS NULL) AND ((plan -> 'files'::text) IS NOT NULL));
CREATE TRIGGER stage_begins_legally BEFORE INSERT ON pawl.stage FOR EACH ROW
  WHEN ((((new.round = 1) AND (((new.seq = 1) AND (new.state = 'created'::text))
  OR ((new.seq = 2) AND (new.history[1].state = 'created'::text) AND (new.state = 'pending'::text)))) IS NOT TRUE))
  EXECUTE FUNCTION pawl.refuse_stage_move();
CREATE TRIGGER stage_ends_before_it_goes BEFORE DELETE ON pawl.stage FOR EACH ROW
  WHEN (((old.state = ANY ('{succeeded,skipped,partial,failed,cancelled}'::text[])) IS NOT TRUE))
  EXECUTE FUNCTION pawl.refuse_stage_move();
CREATE TRIGGER stage_moves_legally AFTER UPDATE ON pawl.stage FOR EACH ROW
  EXECUTE FUNCTION pawl.refuse_stage_move();

-- Folders that attempts upload to, and when to look there for files that dead attempts left.
create table pawl.staging (
  outputs text collate "C" not null,
  key text collate "C" not null,
  at timestamp with time zone not null,
  rounds integer not null default 0,
  constraint staging_pkey PRIMARY KEY (key)
);

-- Moves of tasks, counted per minute and type. The rows at -infinity are the sums of all minutes and are never deleted.
-- The phases (queue, run) have one row per bucket of a histogram, with the sum of its seconds.
create table pawl.stat (
  at timestamp with time zone not null,
  type text collate "C" not null,
  what text collate "C" not null,
  bucket smallint not null,
  n bigint not null,
  seconds double precision not null,
  constraint stat_pkey PRIMARY KEY (at, type, what, bucket)
) with (fillfactor = 70);

-- Changes to the counts of a stage since they were last added up. A settle appends a row and locks nothing.
create table pawl.tally (
  job_id uuid not null,
  stage_id uuid not null,
  total integer not null default 0,
  good integer not null default 0,
  bad integer not null default 0,
  partial integer not null default 0,
  skipped integer not null default 0,
  begun integer not null default 0,
  blocked integer not null default 0,
  at timestamp with time zone not null default pawl.clock()
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_limit = 2000);
CREATE INDEX tally_stage ON pawl.tally USING btree (job_id, stage_id);

-- One unit of work, with its payload, its result and its history.
create table pawl.task (
  id uuid not null,
  lane_id integer not null,
  seq integer not null,
  round integer not null,
  epoch integer not null,
  failures integer not null default 0,
  losses integer not null default 0,
  careful boolean not null default false,
  partial boolean not null default false,
  run_at timestamp with time zone not null,
  lease_until timestamp with time zone,
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  cancel_at timestamp with time zone,
  expire_at timestamp with time zone,
  keep_until timestamp with time zone,
  state text collate "C" not null,
  type text collate "C" not null,
  owner text collate "C",
  job_id uuid,
  stage_id uuid,
  dedupe_key text collate "C",
  dedupe_slot text collate "C",
  correlation_id text collate "C",
  traceparent text collate "C",
  payload json not null,
  settings jsonb,
  metadata jsonb,
  progress json,
  checkpoint json,
  output json,
  error jsonb,
  history pawl.step[] not null,
  files boolean not null default false,
  constraint task_pkey PRIMARY KEY (id),
  constraint task_ended_iff_final CHECK ((((ended_at IS NOT NULL) = (state = ANY ('{succeeded,skipped,failed,cancelled,expired,dead_lettered}'::text[]))) IS TRUE)),
  constraint task_last_event_is_the_row CHECK ((((history[seq].state = state) AND (history[seq].epoch = epoch)) IS TRUE)),
  constraint task_lease_iff_held CHECK ((((lease_until IS NOT NULL) = (state = ANY ('{assigned,running}'::text[]))) IS TRUE)),
  constraint task_one_event_per_seq CHECK (((cardinality(history) = seq) IS TRUE))
) with (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_limit = 2000, fillfactor = 25);
CREATE INDEX task_correlation ON pawl.task USING btree (correlation_id) WHERE (correlation_id IS NOT NULL);
CREATE UNIQUE INDEX task_dedupe ON pawl.task USING btree (dedupe_slot) WHERE (dedupe_slot IS NOT NULL);
CREATE INDEX task_stage ON pawl.task USING btree (stage_id, id) WHERE (stage_id IS NOT NULL);
CREATE TRIGGER task_begins_legally BEFORE INSERT ON pawl.task FOR EACH ROW
  WHEN ((((new.round = 1) AND (new.epoch = 0) AND ((new.seq = 1) AND (new.state = ANY ('{queued,blocked}'::text[])))) IS NOT TRUE))
  EXECUTE FUNCTION pawl.refuse_task_move();
CREATE TRIGGER task_ends_before_it_goes BEFORE DELETE ON pawl.task FOR EACH ROW
  WHEN (((old.state = ANY ('{succeeded,skipped,failed,cancelled,expired,dead_lettered}'::text[])) IS NOT TRUE))
  EXECUTE FUNCTION pawl.refuse_task_move();
CREATE TRIGGER task_moves_legally AFTER UPDATE ON pawl.task FOR EACH ROW
  WHEN ((((new.id = old.id) AND record_image_eq(ROW(new.history[:old.seq]), ROW(old.history)) AND (concat_ws(' '::text, old.state, new.history[(old.seq + 1)].state, new.state, (new.seq - old.seq), (new.round - old.round), (new.epoch - old.epoch)) = ANY ('{"queued assigned assigned 1 0 1","retrying assigned assigned 1 0 1","assigned running running 1 0 0","running succeeded succeeded 1 0 0","running skipped skipped 1 0 0","blocked skipped skipped 1 0 0","queued skipped skipped 1 0 0","retrying skipped skipped 1 0 0","assigned running succeeded 2 0 0","assigned running skipped 2 0 0","queued assigned running 2 0 1","retrying assigned running 2 0 1","assigned assigned 0 0 0","assigned assigned assigned 1 0 0","running running 0 0 0","running running running 1 0 0","succeeded succeeded 0 0 0","succeeded succeeded succeeded 1 0 0","skipped skipped 0 0 0","skipped skipped skipped 1 0 0"}'::text[]))) IS NOT TRUE))
  EXECUTE FUNCTION pawl.refuse_task_move();

-- Settings of a task type, and the JSON Schema of its payloads as the last worker declared it.
create table pawl.task_type (
  type text collate "C" not null,
  settings jsonb not null default '{}'::jsonb,
  changed_at timestamp with time zone not null default pawl.clock(),
  payload_schema json,
  payload_version text generated always as (to_hex(hashtextextended((payload_schema)::text, (0)::bigint))) stored,
  constraint task_type_pkey PRIMARY KEY (type)
);

-- Tasks that ended badly, with the columns that they are grouped by, and the evidence of dead letters.
create table pawl.trouble (
  task_id uuid not null,
  state text collate "C" not null,
  reason_code text collate "C",
  evidence jsonb,
  type text collate "C",
  lane_id integer,
  job_id uuid,
  stage_id uuid,
  gist text collate "C",
  ended_at timestamp with time zone,
  constraint trouble_pkey PRIMARY KEY (task_id)
);
CREATE INDEX trouble_job ON pawl.trouble USING btree (job_id) WHERE (state = 'dead_lettered'::text);
CREATE INDEX trouble_state ON pawl.trouble USING btree (state, task_id);

-- A task as people read it.
create view pawl.task_view as
 SELECT t.id,
    l.queue,
    t.type,
    t.state,
    l.priority,
    t.seq,
    t.round,
    t.epoch,
    t.failures,
    t.losses,
    t.careful,
    t.partial,
    t.run_at,
    t.history[1].ts AS created_at,
    t.history[t.seq].ts AS changed_at,
    COALESCE(t.started_at, ( SELECT max(h.ts) AS max
           FROM unnest(t.history) h(ts, epoch, state, type, actor, cause, payload)
          WHERE ((h.epoch = t.epoch) AND (h.state = 'running'::text)))) AS started_at,
    t.ended_at,
    t.lease_until,
    t.cancel_at,
    t.expire_at,
    t.keep_until,
    t.owner,
    t.job_id,
    t.stage_id,
    t.dedupe_key,
    t.correlation_id,
    t.traceparent,
    t.payload,
    t.settings,
    t.metadata,
    t.progress,
    t.checkpoint,
    t.output,
    t.error,
    trouble.evidence AS dead_letter,
    pawl.tries(t.epoch, t.history) AS tries
   FROM ((pawl.task t
     JOIN pawl.lane l ON ((l.id = t.lane_id)))
     LEFT JOIN pawl.trouble ON ((trouble.task_id = t.id)));

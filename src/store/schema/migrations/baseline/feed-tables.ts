/** The event feed, and what is only observed: heartbeats, logs and statistics. */
export const feedTables = `
-- The position of a change in the feed. The number of its own transaction is not enough: a transaction that began early
-- and then waited for a task's lock writes after the holder of the lock, and must come after it in the feed. The highest
-- number assigned so far is never below its own and never that of a future transaction, so a reader that stays below
-- the oldest running transaction misses nothing. PL/pgSQL takes a new snapshot; inlined SQL would use the one with
-- which the statement began.
create function pawl.feed_tx() returns bigint language plpgsql as $$
begin
  return greatest(pg_current_xact_id()::text::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 1);
end $$;

-- The order of the feed: which entities a statement changed, and up to which seq. The events are in the entities' rows.
create table pawl.change (
  tx     bigint not null default pawl.feed_tx(),
  n      bigint generated always as identity (cache 1),
  at     timestamptz not null default now(),
  entity text collate "C" not null,
  ids    uuid[] not null,
  seqs   integer[] not null,
  primary key (tx, n)
);
-- Most of an id is random: compressing arrays of ids takes time and saves nothing.
alter table pawl.change alter column ids set storage external, alter column seqs set storage external;
create index change_at on pawl.change using brin (at);

-- Heartbeats and progress: many, without a seq, and kept only for a short time.
create table pawl.pulse (
  entity_id uuid not null,
  epoch     integer not null,
  ts        timestamptz not null,
  type      text collate "C" not null,
  payload   jsonb
);
create index pulse_entity on pawl.pulse (entity_id, ts);
create index pulse_ts on pawl.pulse using brin (ts);

-- Lines that handlers log: many, without a seq, and kept only for a short time. The worker numbers the lines of an
-- attempt, so a line that is sent twice is stored once.
create table pawl.log (
  task_id uuid not null,
  epoch   integer not null,
  n       integer not null,
  at      timestamptz not null,
  level   text collate "C" not null check (level in ('debug', 'info', 'warn', 'error')),
  message text not null,
  facts   json,
  primary key (task_id, epoch, n)
);
create index log_at on pawl.log using brin (at);

-- Moves of tasks, counted per minute and type. The rows at -infinity are the sums of all minutes and are never deleted.
-- The phases (queue, run) have one row per bucket of a histogram, with the sum of its seconds.
create table pawl.stat (
  at      timestamptz not null,
  type    text collate "C" not null,
  what    text collate "C" not null,
  bucket  smallint not null,
  n       bigint not null,
  seconds double precision not null,
  primary key (at, type, what, bucket)
) with (fillfactor = 70);

-- The position in the feed up to which events were counted in stat. The process that counts locks this row and moves
-- it in the transaction of its counts, so every event is counted once.
create table pawl.counted (
  only_row   boolean primary key default true check (only_row),
  generation uuid not null,
  tx         bigint not null default 0,
  n          bigint not null default 0,
  at         timestamptz
);
insert into pawl.counted (generation) select generation from pawl.meta;

-- The depth of each queue, once a minute. An empty queue has no row.
create table pawl.depth (
  at    timestamptz not null,
  queue text collate "C" not null,
  due   bigint not null,
  held  bigint not null,
  primary key (at, queue)
);
`

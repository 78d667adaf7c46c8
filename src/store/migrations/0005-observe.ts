/** What is only looked at: lines that handlers log, and how often and how fast tasks moved. */
export const observe = `
-- What a handler says while it works: many lines, without a seq, and soon forgotten. The worker numbers them within
-- its attempt, so a line that is sent again is kept once, and those of another lease are never among them.
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

-- Moves of tasks, counted by minute and type; what began at -infinity is the sum of all minutes, and is never removed.
-- For the phases (queue, run) there is a row for each bucket of a histogram, with the sum of what fell into it.
create table pawl.stat (
  at      timestamptz not null,
  type    text collate "C" not null,
  what    text collate "C" not null,
  bucket  smallint not null,
  n       bigint not null,
  seconds double precision not null,
  primary key (at, type, what, bucket)
) with (fillfactor = 70);

-- How far the feed has been counted. Whoever counts holds this row, and moves it on in the transaction of his counts:
-- every event is counted once, however many count.
create table pawl.counted (
  only_row   boolean primary key default true check (only_row),
  generation uuid not null,
  tx         bigint not null default 0,
  n          bigint not null default 0,
  at         timestamptz
);
insert into pawl.counted (generation) select generation from pawl.meta;
`

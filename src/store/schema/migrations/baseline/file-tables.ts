/** Files: what tasks read, what they write, and what is started to run them. */
export const fileTables = `
-- The ledger of files that tasks write.
create table pawl.artifact (
  id         uuid primary key,
  task_id    uuid not null,
  uri        text not null,
  seq        integer not null,
  round      integer not null,
  state      text collate "C" not null,
  ended_at   timestamptz,
  history    pawl.step[] not null,
  job_id     uuid,
  stage_id   uuid,
  -- The attempt that writes it.
  epoch      integer not null default 0,
  name       text collate "C" not null default '',
  -- Where it is until its attempt has won; null: it was moved or deleted, or was written to its place directly.
  staged_uri text,
  size       bigint,
  sha256     text collate "C",
  -- Its task succeeded in that attempt.
  won        boolean not null default false,
  -- The same file, written by an earlier job.
  linked     uuid,
  error      text,
  -- When to try next to move it to its place, and how often that was tried.
  at         timestamptz not null default pawl.clock(),
  tries      integer not null default 0
) with (fillfactor = 50);
-- A URI can be longer than an index entry, so its hash is indexed.
create unique index artifact_one_per_uri on pawl.artifact (coalesce(job_id, task_id), md5(uri))
 where state in ('registered', 'uploaded', 'stored');
create index artifact_of_job on pawl.artifact (job_id, id);
create index artifact_open on pawl.artifact (job_id) where ended_at is null;
create index artifact_of_task on pawl.artifact (task_id, epoch);
create index artifact_of_stage on pawl.artifact (stage_id, name) where state = 'stored';
create index artifact_unstored on pawl.artifact (stage_id) where won and state in ('uploaded', 'error');
create index artifact_to_store on pawl.artifact (at) where won and state = 'uploaded';
create index artifact_to_sweep on pawl.artifact (at) where staged_uri is not null and ended_at is not null;
create index artifact_by_uri on pawl.artifact (md5(uri));

-- The files and folders that a task reads.
create table pawl.input (
  task_id uuid not null,
  uri     text collate "C" not null
);
create index input_of_task on pawl.input (task_id);
create index input_by_uri on pawl.input (md5(uri));

-- A digest of a task's inputs and command. A task with the same digest can reuse the files of an earlier one.
create table pawl.datum (
  task_id uuid primary key,
  digest  text collate "C" not null
);
create index datum_digest on pawl.datum (digest);

-- Stages whose input files are being listed, and when the next process may continue.
create table pawl.listing (
  stage_id uuid primary key,
  job_id   uuid not null,
  at       timestamptz not null default pawl.clock(),
  tries    integer not null default 0,
  error    text
);

-- Folders that attempts upload to, and when to look there for files that dead attempts left.
create table pawl.staging (
  outputs text collate "C" not null,
  key     text collate "C" primary key,
  at      timestamptz not null,
  rounds  integer not null default 0
);

-- The Kubernetes Job that was started for a round of a stage.
create table pawl.run (
  stage_id      uuid not null,
  round         integer not null,
  namespace     text not null,
  made_at       timestamptz not null default pawl.clock(),
  missing_since timestamptz,
  -- The round has ended, and nothing that was started for it still runs.
  stopped_at    timestamptz,
  primary key (stage_id, round)
);
`
